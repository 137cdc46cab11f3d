import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseExact } from '../../src/json/exact.ts'
import { jsonTexts, numberTexts, spoiled } from '../json/arbitrary.ts'
import { read } from './helpers/envelope.ts'

const space = fc.stringMatching(/^[ \n\r\t]{0,3}$/)
type Shape = (list: string, s: string) => string
const shape = fc.constantFrom<Shape>(
  (list, s) => `${s}[${s}${list}${s}]${s}`,
  (list, s) => `{${s}"data"${s}:${s}[${list}]${s},"success":true}${s}`,
  (list, s) =>
    `\ufeff{"message":"\\"data\\":[1]","meta":{"total":1}${s},"links":{"next":null}${s},"data":[${s}${list}]}`,
  (list, s) => `${s}{"data":[0],${s}"data":${s}[${s}${list}${s}]}`,
)

describe('items', () => {
  const spaced = fc.record({ before: space, text: jsonTexts, after: space })

  it('have the text that was sent and its value, whatever is around them', () => {
    fc.assert(
      fc.property(fc.array(spaced), shape, space, (list, around, s) => {
        const joined = list.map(({ before, text, after }) => before + text + after).join(',')

        const { items } = read(around(joined, s))

        expect(items.map(({ text }) => text)).toEqual(list.map(({ text }) => text))
        expect(items.map(({ value }) => JSON.stringify(value))).toEqual(
          list.map(({ text }) => JSON.stringify(parseExact(text))),
        )
      }),
    )
  })

  it('are taken from every body that JSON.parse accepts, and from no other', () => {
    const bodies = fc
      .tuple(fc.array(spaced, { maxLength: 4 }), shape, space)
      .map(([list, around, s]) =>
        around(list.map(({ before, text, after }) => before + text + after).join(','), s),
      )

    fc.assert(
      fc.property(spoiled(bodies), (body) => {
        expect(isTakenForJson(body)).toBe(isJson(body.replace(/^\ufeff/, '')))
      }),
      { numRuns: 5000 },
    )
  })

  it('have every number as it was written', () => {
    // Compact texts whose names neither repeat nor look like numbers: JSON.stringify returns them unchanged.
    const fields = fc.uniqueArray(fc.tuple(fc.stringMatching(/^[a-z]{1,3}$/), numberTexts), {
      selector: ([name]) => name,
    })
    const item = fields.map((pairs) => `{${pairs.map(([name, number]) => `"${name}":${number}`).join(',')}}`)

    fc.assert(
      fc.property(fc.array(fc.oneof(item, numberTexts)), (list) => {
        const { items } = read(`{"data":[${list.join(',')}]}`)

        expect(items.map(({ value }) => JSON.stringify(value))).toEqual(list)
      }),
    )
  })
})

function isTakenForJson(body: string): boolean {
  try {
    read(body)
    return true
  } catch (error) {
    return !/not JSON|breaks off|is empty/.test(String(error))
  }
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}
