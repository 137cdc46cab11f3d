import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { redact } from '../../src/api/redact.ts'
import { printable } from '../../src/text.ts'

const TOKEN = '1|Secret/Word+9'

describe('a token in a text', () => {
  it.each([
    ['as it is', '1|Secret/Word+9'],
    ['encoded', '1%7CSecret%2FWord%2B9'],
    ['encoded three times', '1%25257CSecret%25252FWord%25252B9'],
    ['with slashes escaped twice', '1|Secret\\\\\\/Word+9'],
    ['in escapes of JSON, escaped again', '1\\\\u007cSecret\\\\u002fWord+9'],
    ['decoded as a query', '1|Secret/Word 9'],
    ['in part', '1|Secret/Word'],
  ])('is redacted %s', (_case, echo) => {
    expect(redact(`no user for ${echo}, nor ${echo}`, TOKEN)).toBe('no user for [token], nor [token]')
  })

  it.each([
    ['encoded twice', '1%257cSecret%252fWord%252b9'],
    ['in escapes of JSON', '1\\u007cSecret\\u002fWord\\u002b9'],
    ['in escapes of HTML', '1&#124;Secret&#x2f;Word&#43;9'],
  ])('is redacted %s, wherever it is cut', (_case, echo) => {
    const lengths = Array.from({ length: echo.length + 1 }, (_, length) => length)

    const shown = lengths.map((length) => redact(printable(`${echo} and more`, length), TOKEN))

    expect(shown.filter((text) => /secret/i.test(text))).toEqual([])
  })

  it.each([
    ['a word that only begins like it', '1|Secret/Other'],
    ['a short piece of it', '1|Sec...'],
  ])('leaves %s alone', (_case, text) => {
    expect(redact(text, TOKEN)).toBe(text)
  })

  it.each(['', 'a', 'ab', 'abc', 'user:'])('is redacted in base64, after %j', (before) => {
    const echo = Buffer.from(`${before}${TOKEN}`)
    const inBase64 = [echo.toString('base64'), echo.toString('base64url')]

    const shown = inBase64.map((text) => redact(`no user for ${text}`, TOKEN))

    for (const text of shown) expect(text).toMatch(/^no user for .{0,8}\[token\].{0,4}$/)
  })

  it('may hold backslashes, which are doubled where they are escaped', () => {
    const token = 'Domain\\\\user\\word'

    expect(redact(`${token} ${JSON.stringify(token)}`, token)).toBe('[token] "[token]"')
  })

  it('may be beyond ASCII', () => {
    expect(redact('clé=schl%c3%bcssel-1, schlüssel-1', 'schlüssel-1')).toBe('clé=[token], [token]')
  })

  it('may be short, and is then cut no shorter', () => {
    expect(redact('a|b a%7cb a|... x', 'a|b')).toBe('[token] [token] a|... x')
  })

  it('may be as long as a header takes', () => {
    const token = 'eyJhbGciOi|'.repeat(700)

    expect(redact(`${token} (${encodeURIComponent(token)} ${printable(token, 80)}`, token)).toBe(
      '[token] ([token] [token]...',
    )
  })

  it('that is empty changes nothing', () => {
    expect(redact('a text', '')).toBe('a text')
  })

  it.each([
    ['https://admin.example.com/?x-mode=x2 box', 'https://admin.example.com/?x-mode=x2 box'],
    ['no user for x', 'no user for [token]'],
    ['?token=x&page=2, "x", %22x%22 \\u0078.', '?token=[token]&page=2, "[token]", %22[token]%22 [token].'],
  ])('of one letter is redacted as a whole word only: %s', (text, shown) => {
    expect(redact(text, 'x')).toBe(shown)
  })

  it.each([
    ['its end', 'no user for ...t/Word+9-and-more'],
    ['what Laravel Sanctum compares', 'no user for Secret/Word+9-and-more'],
    ['its end in base64', `no ${Buffer.from('t/Word+9-and-more').toString('base64')}`],
  ])('is redacted in part: %s', (_part, text) => {
    expect(redact(text, `${TOKEN}-and-more`)).toMatch(/^no .{0,12}\[token\].{0,4}$/)
  })

  it('is redacted in base64 that is cut', () => {
    const echo = Buffer.from(`user:${TOKEN.repeat(20)}`).toString('base64')

    const shown = redact(printable(`no user for ${echo}`), TOKEN.repeat(20))

    expect(shown).toMatch(/^no user for .{0,8}\[token\]\.\.\.$/)
  })
})

/** Ways to write a whole text. */
const WHOLE: ((text: string) => string)[] = [
  (text) => text,
  (text) => text.toUpperCase(),
  encodeURIComponent,
  (text) => encodeURIComponent(text).toLowerCase(),
  (text) => JSON.stringify(text).slice(1, -1).replaceAll('/', '\\/'),
  (text) => text.replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`),
  (text) => text.replace(/[&<>"']/g, (sign) => `&#x${sign.charCodeAt(0).toString(16)};`),
  (text) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;'),
]

/** Ways to write a character that every reader decodes alike. */
const SINGLE: ((code: number) => string)[] = [
  (code) => String.fromCharCode(code),
  (code) => `%${code.toString(16)}`,
  (code) => `%25${code.toString(16)}`,
  (code) => `%252525${code.toString(16).toUpperCase()}`,
  (code) => `\\u00${code.toString(16)}`,
  (code) => `\\\\\\\\u00${code.toString(16)}`,
  (code) => `&#${code};`,
  (code) => `&amp;#x${code.toString(16)};`,
]

const visible = fc
  .string({
    unit: fc.integer({ min: 0x21, max: 0x7e }).map((code) => String.fromCharCode(code)),
    minLength: 12,
    maxLength: 200,
  })
  // One at the end may stay, and gives nothing away.
  .map((token) => token.replace(/^\\+|\\+$/g, (ends) => '/'.repeat(ends.length)))

/** As Sanctum, Passport and most others make them: nothing in them looks like an escape. */
const plain = visible.map((token) => token.replace(/[%\\&+]/g, '|'))

describe('any token', () => {
  it('is redacted however a text with it is encoded', () => {
    fc.assert(
      fc.property(visible, fc.array(fc.constantFrom(...WHOLE), { maxLength: 4 }), (token, ways) => {
        const echo = ways.reduce((text, encode) => encode(text), token)

        // A backslash in front of it belongs to its first character, and gives nothing away.
        expect(redact(`<${echo}> and (${echo})`, token)).toMatch(
          /^<(?:\\|%(?:25)*5c)*\[token\]> and \((?:\\|%(?:25)*5c)*\[token\]\)$/i,
        )
      }),
      { numRuns: 500 },
    )
  })

  it('is redacted however each of its characters is written', () => {
    fc.assert(
      fc.property(plain, fc.array(fc.constantFrom(...SINGLE), { minLength: 1 }), (token, ways) => {
        const echo = Array.from(token, (character, at) =>
          (ways[at % ways.length] ?? String)(character.charCodeAt(0)),
        ).join('')

        expect(redact(`<${echo}>`, token)).toMatch(/^<\\*\[token\]>$/)
      }),
      { numRuns: 500 },
    )
  })

  it('is redacted in base64, whatever is around it', () => {
    fc.assert(
      fc.property(visible, fc.string(), fc.string(), (token, before, after) => {
        const shown = redact(Buffer.from(before + token + after).toString('base64'), token)

        expect(Buffer.from(shown.replace(/\[token\].*/, ''), 'base64').toString()).not.toContain(
          token.slice(0, 6),
        )
        expect(shown).toContain('[token]')
      }),
    )
  })

  it('leaves the text around it as it is', () => {
    fc.assert(
      fc.property(plain, fc.string({ maxLength: 5 }), (token, around) => {
        fc.pre(!/[%\\&+]/.test(around))
        expect(redact(`${around} ${token} ${around}`, token)).toBe(`${around} [token] ${around}`)
      }),
    )
  })

  it.each([
    ['the token over and over', 'a'.repeat(8192), 'a'.repeat(200_000)],
    ['what begins like the token', `${'a'.repeat(8191)}b`, 'a'.repeat(200_000)],
    ['escapes of escapes', `${'%25'.repeat(2700)}a`, '%25'.repeat(70_000)],
    ['backslashes', `${'\\'.repeat(8000)}u0061bcdefghijkl`, '\\'.repeat(200_000)],
    ['cuts', 'a'.repeat(8192), `${'a'.repeat(7)}...`.repeat(20_000)],
    ['escapes of HTML that never end', '&#x'.repeat(2700), '&#x0000000'.repeat(20_000)],
  ])('is found in time linear in the text: %s', (_what, token, text) => {
    // If time grew with the product of both lengths, these would take hours.
    expect(redact(text, token)).not.toContain(token)
  })
})
