import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseExact } from '../../src/json/exact.ts'
import { canonicalNumber, differingFields, type JsonValue, sameJson } from '../../src/json/value.ts'
import { jsonTexts, numberTexts } from './arbitrary.ts'

describe('sameJson', () => {
  it.each<[a: string, b: string, same: boolean, ignore?: string[]]>([
    ['1e400', '10e399', true],
    ['"\\u00e9"', '"é"', true],
    ['{"__proto__":1}', '{"__proto__":1.0}', true],
    ['{}', '{"a":null}', false],
    ['1', '"1"', false],
    ['1.0', '{"rawJSON":"1.0"}', false],
    ['9007199254740993', '9007199254740992', false],
    ['1e400', '1e401', false],
    ['[1]', '[1,null]', false],
    ['{"0":1}', '[1]', false],
    ['{"__proto__":{}}', '{"b":{}}', false],
    ['{"a":1,"t":1}', '{"a":1,"t":2}', true, ['t']],
    ['{"c":{"t":1,"x":1}}', '{"c":{"x":1}}', true, ['c.t']],
    ['{"c.t":1}', '{"c.t":2}', true, ['c.t']],
    ['{"c":{"t":1,"x":1}}', '{"c":{"t":1,"x":2}}', false, ['c.t']],
    ['{"t":1}', '{"t":2}', false, ['c.t']],
    ['{"c":{"t":1}}', '{"c":{"t":2}}', false, ['t']],
    ['{"c":[{"t":1}]}', '{"c":[{"t":2}]}', false, ['c.t']],
    ['{"c":{"t":1}}', '{}', false, ['c.t']],
  ])('of %s and %s is %j, without %j', (a, b, expected, ignore = []) => {
    expect(sameJson(parseExact(a), parseExact(b), new Set(ignore))).toBe(expected)
    expect(sameJson(parseExact(b), parseExact(a), new Set(ignore))).toBe(expected)
  })

  it('finds every value the same as itself, parsed again and with its fields reversed', () => {
    fc.assert(
      fc.property(jsonTexts, (text) => sameJson(parseExact(text), reversed(parseExact(text)), new Set())),
      { numRuns: 500 },
    )
  })
})

const pathsOf = (a: JsonValue, b: JsonValue, ignore = new Set<string>()) =>
  [...differingFields(a, b, ignore)].map((names) => names.join('.'))

describe('differingFields', () => {
  it.each([
    ['the same value written otherwise', '{"a":1.10,"b":[1,2]}', '{"b":[1,2.0],"a":1.1}', []],
    ['a nested value', '{"c":{"d":{"e":1,"f":1}}}', '{"c":{"d":{"e":2,"f":1}}}', ['c.d.e']],
    ['fields on either side alone', '{"a":1,"c":{"d":1}}', '{"a":1,"c":{"e":null}}', ['c.d', 'c.e']],
    ['a list, as a whole', '{"l":[{"a":1},2]}', '{"l":[{"a":2},2]}', ['l']],
    ['an object where the other has a text', '{"c":{"d":1}}', '{"c":"x"}', ['c']],
    ['names of Object.prototype', '{}', '{"constructor":1,"__proto__":2}', ['constructor', '__proto__']],
    ['values that are no objects', '1', '2', ['']],
  ])('returns, of two items: %s', (_, a, b, expected) => {
    expect(pathsOf(parseExact(a), parseExact(b))).toEqual(expected)
  })

  it('leaves ignored paths out, and has each as its names: one may hold a dot', () => {
    const [a = null, b = null] = ['{"a.b":1,"c":{"t":1,"u":1},"d":1}', '{"a.b":2,"c":{"t":2,"u":2}}'].map(
      parseExact,
    )

    expect([...differingFields(a, b, new Set(['c.t']))]).toEqual([['a.b'], ['c', 'u'], ['d']])
  })

  it('returns nothing exactly where two values are the same', () => {
    const ignored = fc.constantFrom('a', 'b', 'a.b', 'id')
    fc.assert(
      fc.property(jsonTexts, jsonTexts, fc.array(ignored), (left, right, ignore) => {
        const [a, b] = [parseExact(left), parseExact(right)]
        const set = new Set(ignore)
        expect(pathsOf(a, b, set).length === 0).toBe(sameJson(a, b, set))
        expect(pathsOf(a, a, set)).toEqual([])
      }),
      { numRuns: 1000 },
    )
  })
})

function reversed(value: ReturnType<typeof parseExact>): ReturnType<typeof parseExact> {
  if (Array.isArray(value)) return value.map(reversed)
  if (typeof value !== 'object' || value === null || JSON.isRawJSON(value)) return value
  const fields = Object.entries(value).map(([name, field]) => [name, reversed(field)] as const)
  return Object.fromEntries(fields.toReversed())
}

describe('canonicalNumber', () => {
  it.each([
    ['1.1', ['1.1', '1.10', '11e-1', '0.11E+1', '1100e-3']],
    ['0', ['0', '-0', '0.00', '-0e5', '0e-999999999']],
    ['0.001', ['0.001', '1e-3', '00.0010']],
    ['2000', ['2000', '2e3', '2000.0']],
    [`1${'0'.repeat(100)}`, ['1e100']],
    ['1e101', ['1e101']],
    [`0.${'0'.repeat(100)}1`, ['1e-101']],
    ['1e-102', ['1e-102']],
    ['1e400', ['1e400', '10e399', `1${'0'.repeat(400)}`, '0.1e401']],
    ['-5e-999999999', ['-5e-999999999', '-0.5e-999999998']],
    ['1e99999999999999999999999', ['1e99999999999999999999999', '10e99999999999999999999998']],
  ])('writes %s for %j', (canonical, texts) => {
    expect(texts.map(canonicalNumber)).toEqual(texts.map(() => canonical))
  })

  it('reads the first 10,000 digits of an exponent of millions, which takes no minutes', () => {
    expect(canonicalNumber(`1e-${'9'.repeat(30_000_000)}`)).toBe(`1e-${'9'.repeat(10_000)}`)
    expect(canonicalNumber(`1e+${'0'.repeat(30_000_000)}2`)).toBe('100')
  })

  it('is equal exactly when the values are', () => {
    const pair = fc.oneof(
      fc.tuple(numberTexts, numberTexts),
      numberTexts.map((text) => [text, rewritten(text)] as const),
    )
    fc.assert(
      fc.property(pair, ([a, b]) => {
        expect(canonicalNumber(a) === canonicalNumber(b)).toBe(scaled(a) === scaled(b))
      }),
      { numRuns: 2000 },
    )
  })
})

/** The same value written in another way. */
function rewritten(text: string): string {
  const [mantissa = '', exponent = '0'] = text.split(/e/i)
  return `${mantissa}${mantissa.includes('.') ? '' : '.'}000e${Number(exponent)}`
}

/** The value times 10^600, as an integer: then every number of these tests is whole. */
function scaled(text: string): bigint {
  const [mantissa = '', exponent = '0'] = text.split(/e/i)
  const [whole = '', fraction = ''] = mantissa.split('.')
  const digits = BigInt(whole.replace('-', '') + fraction)
  const sign = whole.startsWith('-') ? -1n : 1n
  return sign * digits * 10n ** BigInt(600 + Number(exponent) - fraction.length)
}
