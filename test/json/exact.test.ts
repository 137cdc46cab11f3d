import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { findInexactNumbers, parseExact, readTokens } from '../../src/json/exact.ts'
import { isRawNumber, type JsonValue, type RawNumber } from '../../src/json/value.ts'
import { jsonTexts, spoiled } from './arbitrary.ts'

const INEXACT = ['12345678901234567890', '1.10', '1e400', '-0', '0.0000001', '1e-7000']
const EXACT = ['0', '-1', '9007199254740991', '1e+21', '0.000001', '1152921504606847000']

describe('parseExact', () => {
  it.each(INEXACT)('keeps %s as a raw number', (text) => {
    const parsed = [text, ` ${text} `, `[1,${text}]`, `{"a":${text}}`, `{"a": ${text}\n}`].map(parseExact)

    expect(parsed.map((value) => JSON.stringify(value))).toEqual([
      text,
      text,
      `[1,${text}]`,
      `{"a":${text}}`,
      `{"a":${text}}`,
    ])
    expect(isRawNumber(parseExact(text))).toBe(true)
  })

  it.each(EXACT)('returns a plain number for %s', (text) => {
    expect([parseExact(text), parseExact(`[${text}]`)]).toEqual([Number(text), [Number(text)]])
  })

  it.each(['{"a":1.10', '{ 1.10:2}', '[1.10.2]', '[01.10]', '["a" 1.10]', '["a\\" ,1.10]', '[1.10"]'])(
    'throws the SyntaxError of JSON.parse for %s',
    (text) => {
      expect(() => parseExact(text)).toThrow(SyntaxError)
    },
  )

  it.each(['["\\" ,1.10,",1.10]', '["\\\\",1.10," 1.10"]', '{"__proto__":1.10,"a":" 1.10"}'])(
    'takes no part of a text for a number: %s',
    (text) => {
      expect(JSON.stringify(parseExact(text))).toBe(text)
    },
  )

  it('reads a text of many megabytes beside an escaped name', () => {
    const text = `{"caf\\u00e9":"${'A'.repeat(12_000_000)}","a":1.10}`

    expect(JSON.stringify(parseExact(text))).toHaveLength(text.length - 5)
  })

  it.each(['{"h":1,"\\n":2.0}', '{"h":1,"\\u0000":2}', '{"h":1,"\\"" :{"a\\tb":[]}}'])(
    'reads an escaped name right after an object with a backslash for a name: %s',
    (text) => {
      parseExact('{"h":[],"\\\\":0}')

      expect(JSON.stringify(parseExact(text))).toBe(text.replace(' ', ''))
    },
  )

  it('keeps every number, name and value as it was written', () => {
    fc.assert(
      fc.property(jsonTexts, (text) => {
        expect(JSON.stringify(parseExact(text))).toBe(JSON.stringify(readTokens(text, exactly)))
      }),
      { numRuns: 3000 },
    )
  })

  it('returns a plain number wherever that loses nothing', () => {
    fc.assert(
      fc.property(jsonTexts, (text) => {
        const needless = rawNumbersOf(parseExact(text)).filter((source) => source === String(Number(source)))

        expect(needless).toEqual([])
      }),
      { numRuns: 1000 },
    )
  })

  it('refuses exactly what JSON.parse refuses', () => {
    fc.assert(
      fc.property(spoiled(jsonTexts), (text) => {
        expect(errorOf(() => parseExact(text))).toBe(errorOf(() => JSON.parse(text)))
      }),
      { numRuns: 5000 },
    )
  })
})

function errorOf(read: () => unknown): string | null {
  try {
    read()
    return null
  } catch (error) {
    return error instanceof Error ? error.name : 'no error'
  }
}

function rawNumbersOf(value: JsonValue): string[] {
  if (typeof value !== 'object' || value === null) return []
  return isRawNumber(value) ? [value.rawJSON] : Object.values(value).flatMap(rawNumbersOf)
}

describe('findInexactNumbers', () => {
  it.each<[string, string[]]>([
    [' -0 ', ['-0']],
    ['{"a":1.10,"b":[-0,12.5,[20.0]],"c": 1e5\n}', ['1.10', '-0', '20.0', '1e5']],
    ['{"a":123456789012345,"b":1234567890123456,"c":-12345678901234567890}', ['-12345678901234567890']],
    ['{"created_at":"2024-05-06T07:08:09.000000Z","at":" 1.10"}', []],
    ['{"id":0,"n":[0,10,100,-5,0.5,10.05],"phone":"12345678901234567890"}', []],
  ])('finds in %s exactly %j', (text, expected) => {
    const found = findInexactNumbers(text).map((start) => /[-+.\deE]+/.exec(text.slice(start))?.[0])

    expect(found).toEqual(expected)
  })
})

/** Every number by its text. */
function exactly(source: string): RawNumber {
  return JSON.rawJSON(source)
}
