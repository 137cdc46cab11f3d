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
    ['a bare list', '[1,"a",{"b":[2]}]', ['1', '"a"', '{"b":[2]}']],
    ['the list under data', '{"data":[{"id":1},{"id":2}],"meta":{}}', ['{"id":1}', '{"id":2}']],
    ['a list behind other fields', '{"meta":{"data":[9]},"data":[1]}', ['1']],
    ['an empty list', '{"data":[]}', []],
    ['an empty list with spaces', ' { "data" : [ ] } ', []],
    ['an empty bare list', '[]', []],
    ['items with spaces about them', '{"data":[\n {"a" : 1} ,\t[ 2 ]\r\n]}', ['{"a" : 1}', '[ 2 ]']],
    ['words and numbers', '[null,true,false,-0.10e+5]', ['null', 'true', 'false', '-0.10e+5']],
    [
      'brackets, quotes and commas in texts',
      '["]","}","\\"",",","\\\\","\\\\\\""]',
      ['"]"', '"}"', '"\\""', '","', '"\\\\"', '"\\\\\\""'],
    ],
    ['the values of an object', '{"data":{"3":{"a":1},"0":[2]}}', ['{"a":1}', '[2]']],
    ['a value that came twice', '{"data":{"0":1,"0":2}}', ['1', '2']],
    ['the last of two data fields', '{"data":[1],"data":[2,3]}', ['2', '3']],
    ['data under an escaped name', '{"d\\u0061ta":[1]}', ['1']],
    ['no data', '{"items":[1]}', null],
    ['data that is a text', '{"data":"[1]"}', null],
    ['data that is null', '{"data":null}', null],
    ['a list and then a data field that is none', '{"data":[1],"data":null}', null],
    ['a text', '"[1]"', null],
    ['a number', '12', null],
  ])('finds %s', (_case, text, expected) => {
    expect(textsOf(text)).toEqual(expected)
  })

  it('has the keys of an object in the order they were sent', () => {
    const { slices } = outline('{"data":{"10":0,"2":0,"\\u0031":0}}', MANY)

    expect(slices?.map(({ key }) => key)).toEqual(['10', '2', '1'])
  })

  it('has no keys for a list that replaces an object', () => {
    const { slices } = outline('{"data":{"a":1},"data":[2]}', MANY)

    expect(slices).toEqual([{ key: null, start: 24, end: 25, inexact: [] }])
  })

  it('has slices of the first items, and counts all', () => {
    const { slices, items } = outline('[1,2,3,4]', 2)

    expect(slices).toHaveLength(2)
    expect(items).toBe(4)
  })

  it('takes no time for a long name before nothing but colons', () => {
    const text = `{"${'x'.repeat(300_000)}"${':'.repeat(300_000)}`

    expect(outline(text, MANY)).toMatchObject({ depth: 1, values: 2 })
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

  it('gives each item exactly as it was written', () => {
    const lists = fc.array(fc.tuple(spaces, jsonTexts, spaces))

    fc.assert(
      fc.property(lists, spaces, (list, space) => {
        const items = list.map(([before, text, after]) => before + text + after).join(',')
        const expected = list.map(([, text]) => text)

        expect(textsOf(`${space}[${items || space}]${space}`)).toEqual(expected)
        expect(textsOf(`{${space}"data"${space}:${space}[${items || space}]${space}}`)).toEqual(expected)
      }),
    )
  })

  it('finds as many items as JSON.parse, with the same values', () => {
    fc.assert(
      fc.property(fc.array(fc.jsonValue()), fc.constantFrom(undefined, 1, '\t'), (list, indent) => {
        const found = textsOf(JSON.stringify({ first: 1, data: list, links: { data: [1] } }, null, indent))

        expect(found?.map((text) => JSON.parse(text))).toEqual(JSON.parse(JSON.stringify(list)))
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

  it('is detected in a list, too', () => {
    fc.assert(
      fc.property(fc.array(jsonTexts), spaces, (list, space) => {
        const missed = prefixes(`[${list.join(`${space},`)}]`).filter((prefix) => !breaksOff(prefix))

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

  it.each([
    '{"data":[1,,2]}',
    '{"data":[1],}',
    "{'data':[1]}",
    '{"data":[1]} and more',
    '{"data":[1]}]',
    '[1]]',
    '[object Object]',
    '{data}',
    '',
  ])('is not one that is wrong otherwise: %j', (text) => {
    expect(breaksOff(text)).toBe(false)
  })
})

describe('the depth of a text', () => {
  it.each<[string, number]>([
    ['1', 0],
    ['"[[["', 0],
    ['[]', 1],
    ['{"a":1}', 1],
    ['[[],[[]]]', 3],
    ['{"a":[{"b":{}}],"c":[]}', 4],
    ['["\\"[[["]', 1],
  ])('of %s is %i', (text, depth) => {
    expect(outline(text, MANY).depth).toBe(depth)
  })

  it('is that of the values', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 6 }), (value) => {
        expect(outline(JSON.stringify(value), MANY).depth).toBe(depthOf(value))
      }),
    )
  })

  it('is found without recursion', () => {
    expect(outline('['.repeat(1_000_000) + ']'.repeat(1_000_000), MANY).depth).toBe(1_000_000)
  })
})

describe('what a text holds', () => {
  it.each<[string, number, number]>([
    ['[1,2,3]', 4, 3],
    [' [{"a":1,"b":2},{"a":[1,2]}]', 8, 2],
    ['{"data":[1,2],"links":{"next":null}}', 6, 2],
    ['{"data":[{"a":1,"b":2},{"c":[1,2]}]}', 9, 2],
    ['["1,2,3"]', 2, 1],
  ])('of %s is %i values at most and %i items', (text, values, items) => {
    expect(outline(text, MANY)).toMatchObject({ values, items })
  })

  it('is counted exactly for the items of a list, and never too low for all values', () => {
    fc.assert(
      fc.property(fc.array(fc.jsonValue()), (list) => {
        const { values, items } = outline(JSON.stringify(list), MANY)
        expect(items).toBe(Math.max(1, list.length))
        expect(values).toBeGreaterThanOrEqual(valuesOf(list))
      }),
    )
  })
})

function valuesOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 1
  return Object.values(value).reduce((sum: number, one) => sum + valuesOf(one), 1)
}

function prefixes(text: string): string[] {
  return Array.from({ length: text.length - 1 }, (_, index) => text.slice(0, index + 1))
}

function depthOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0
  return 1 + Math.max(0, ...Object.values(value).map(depthOf))
}
