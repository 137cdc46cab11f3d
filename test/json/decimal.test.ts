import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { canonicalNumber } from '../../src/json/value.ts'
import { numberTexts } from './arbitrary.ts'

describe('canonicalNumber', () => {
  it.each([
    ['1.1', ['1.1', '1.10', '11e-1', '0.11E+1', '1100e-3']],
    ['20', ['20', '20.0', '2e1', '0.2e2']],
    ['0', ['0', '-0', '0.00', '-0e5', '0e-999999999']],
    ['1e400', ['1e400', '10e399', `1${'0'.repeat(400)}`, '0.1e401']],
    ['1e999999999', ['1e999999999', '10E+999999998']],
    ['-5e-999999999', ['-5e-999999999', '-0.5e-999999998']],
    ['1e99999999999999999999999', ['1e99999999999999999999999', '10e99999999999999999999998']],
    ['-0.0000001', ['-0.0000001', '-1e-7']],
    ['12345678901234567890', ['12345678901234567890', '12345678901234567890.0']],
  ])('writes %s for %j', (canonical, texts) => {
    expect(texts.map(canonicalNumber)).toEqual(texts.map(() => canonical))
  })

  it.each([
    ['1e400', '1e401'],
    ['1e999999999999999999999', '1e999999999999999999998'],
    ['0.1', '0.10000000000000000001'],
  ])('distinguishes %s from %s', (a, b) => {
    expect(canonicalNumber(a)).not.toBe(canonicalNumber(b))
  })

  it('reads the first 10,000 digits of an exponent of millions, which takes no minutes', () => {
    const long = '9'.repeat(10_000)

    expect(canonicalNumber(`1e${'9'.repeat(30_000_000)}`)).toBe(`1e${long}`)
    expect(canonicalNumber(`1e-${'9'.repeat(30_000_000)}`)).toBe(`1e-${long}`)
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

  it('is its own canonical text', () => {
    fc.assert(
      fc.property(numberTexts, (text) => canonicalNumber(canonicalNumber(text)) === canonicalNumber(text)),
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
  return (
    BigInt(whole.replace('-', '') + fraction) *
    10n ** BigInt(600 + Number(exponent) - fraction.length) *
    (whole.startsWith('-') ? -1n : 1n)
  )
}
