import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { breaksOff, outline } from '../../src/api/body.ts'
import { findInexactNumbers } from '../../src/json/exact.ts'
import { jsonTexts } from '../json/arbitrary.ts'

/** More items than any of the texts has. */
const MANY = 10_000

const spaces = fc.stringMatching(/^[ \n\r\t]{0,3}$/)

const objectTexts = jsonTexts.filter((text) => text.startsWith('{'))

function textsOf(text: string): string[] | null {
  return outline(text, MANY).slices?.map(({ start, end }) => text.slice(start, end)) ?? null
}

describe('splitting the items of a body', () => {
  it.each<[string, string, string[] | null]>([
    ['a list behind other fields', '{"meta":{"data":[9]},"data":[1]}', ['1']],
    [
      'brackets, quotes and commas in texts',
      '["]","}","\\"",",","\\\\","\\\\\\""]',
      ['"]"', '"}"', '"\\""', '","', '"\\\\"', '"\\\\\\""'],
    ],
    ['data under an escaped name', '{"d\\u0061ta":[1]}', ['1']],
  ])('finds %s', (_case, text, expected) => {
    expect(textsOf(text)).toEqual(expected)
  })

  it('has no keys for a list that replaces an object', () => {
    const { slices } = outline('{"data":{"a":1},"data":[2]}', MANY)

    expect(slices).toEqual([{ key: null, start: 24, end: 25, inexact: [] }])
  })

  it('finds the start of each number that JSON.parse changes', () => {
    const lists = fc.array(fc.tuple(spaces, jsonTexts, spaces))

    fc.assert(
      fc.property(lists, fc.boolean(), (list, isObject) => {
        const written = list.map(([before, text, after]) => before + text + after)
        const members = isObject
          ? `{${written.map((text) => `"1":${text}`).join(',')}}`
          : `[${written.join(',')}]`

        const { slices } = outline(`{"data":[1.10],"total":1.0,"data":${members},"meta":{"to":1.0}}`, MANY)

        expect(slices?.map(({ inexact }) => inexact)).toEqual(
          list.map(([, text]) => findInexactNumbers(text)),
        )
      }),
    )
  })
})

describe('a body that breaks off', () => {
  it('is detected wherever it may break', () => {
    fc.assert(
      fc.property(objectTexts, (text) => {
        const missed = prefixes(text).filter((prefix) => !breaksOff(prefix))

        expect(missed).toEqual([])
      }),
    )
  })

  it('is not a whole one', () => {
    fc.assert(
      fc.property(jsonTexts, spaces, (text, space) => {
        expect(breaksOff(space + text + space)).toBe(false)
      }),
    )
  })

  it.each(['{"data":[1],}', "{'data':[1]}", '{"data":[1]}]', '[object Object]', ''])(
    'is not one that is wrong otherwise: %j',
    (text) => {
      expect(breaksOff(text)).toBe(false)
    },
  )
})

describe('the depth of a text', () => {
  it('is that of the values', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 6 }), (value) => {
        expect(outline(JSON.stringify(value), MANY).depth).toBe(depthOf(value))
      }),
    )
  })
})

function prefixes(text: string): string[] {
  return Array.from({ length: text.length - 1 }, (_, index) => text.slice(0, index + 1))
}

function depthOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0
  return 1 + Math.max(0, ...Object.values(value).map(depthOf))
}
