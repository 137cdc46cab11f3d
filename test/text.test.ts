import { describe, expect, it } from 'vitest'
import { counted, grouped, inWords, printable, printableJson } from '../src/text.ts'

const SECOND = 1000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE

describe('printableJson', () => {
  it('escapes every character that a terminal might obey, and stays the same JSON', () => {
    const value = { 'a\u009b': ['\u001b[2J', '\u007f\u0085\u2028\u202e', '\u{e0001} 田中 🙂', 'a\tb\n'] }

    const json = printableJson(JSON.stringify(value, null, 2))

    expect(JSON.parse(json)).toEqual(value)
    expect(json.replaceAll('\n', '')).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u)
    expect(json).toContain('田中 🙂')
  })
})

describe('printable', () => {
  it.each([
    ['letters of all sorts', 'Zoë 田中 🙂', 'Zoë 田中 🙂'],
    ['an escape sequence', '\u001b[2Jx', '\\u{1b}[2Jx'],
    ['line breaks', 'a\r\nb\u2028c', 'a\\u{d}\\u{a}b\\u{2028}c'],
    ['a control character beyond ASCII', '\u009b2J', '\\u{9b}2J'],
    ['what reverses the line', 'a\u202eb', 'a\\u{202e}b'],
    ['half a character', 'a\ud83d', 'a\\u{d83d}'],
  ])('writes %s so that it stays on its line', (_, text, shown) => {
    expect(printable(text)).toBe(shown)
  })

  it('cuts what is too long, and marks the cut', () => {
    expect(printable('12345', 5)).toBe('12345')
    expect(printable('123456', 5)).toBe('12345...')
  })
})

describe('grouped and counted', () => {
  it.each([
    [1, '1', '1 page'],
    [1_234_567, '1,234,567', '1,234,567 pages'],
    [1234.5678, '1,234.568', '1,234.568 pages'],
  ])('write %d in groups of three, and with its noun', (count, text, withNoun) => {
    expect(grouped(count)).toBe(text)
    expect(counted(count, 'page')).toBe(withNoun)
  })
})

describe('inWords', () => {
  it.each([
    [0, '0 seconds'],
    [1, '1 second'],
    [1499, '1 second'],
    [90 * SECOND, '90 seconds'],
    [91 * SECOND, '2 minutes'],
    [90 * MINUTE, '90 minutes'],
    [91 * MINUTE, '2 hours'],
    [36 * HOUR, '36 hours'],
    [37 * HOUR, '2 days'],
    // The clock was put back.
    [-5 * SECOND, '0 seconds'],
  ])('says %i ms as %s', (ms, words) => {
    expect(inWords(ms)).toBe(words)
  })
})
