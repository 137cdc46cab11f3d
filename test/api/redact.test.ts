import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { redact } from '../../src/api/redact.ts'
import { printable } from '../../src/text.ts'

const TOKEN = '1|Secret/Word+9'

const inBase64 = (text: string) => Buffer.from(text).toString('base64')

describe('a token in a text', () => {
  it.each([
    ['as it is', '1|Secret/Word+9'],
    ['in other case', '1|SECRET/WORD+9'],
    ['encoded three times', '1%25257CSecret%25252FWord%25252B9'],
    ['in escapes of JSON, escaped again', '1\\\\u007cSecret\\\\u002fWord+9'],
    ['within a longer word', 'https://admin.example.com/?token=1|Secret/Word+9&page=2'],
    ['in base64 after a name', inBase64(`user:${TOKEN}`)],
    ['in base64 of URLs', Buffer.from(`ab${TOKEN}`).toString('base64url')],
    ['in base64 without its beginning', inBase64('t/Word+9-and-more')],
    ['in base64 cut by one character', inBase64(`user:${TOKEN}-and-more`).slice(1)],
    ['in base64 cut by two characters', inBase64(`user:${TOKEN}-and-more`).slice(2)],
    ['in base64 cut by three characters', inBase64(`user:${TOKEN}-and-more`).slice(3)],
  ])('takes its word out %s', (_case, echo) => {
    expect(redact(`no user for "${echo}", nor (${echo})`, `${TOKEN}-and-more`)).toBe(
      'no user for [token] nor [token]',
    )
  })

  it.each([
    ['as it is', TOKEN],
    ['encoded twice', '1%257cSecret%252fWord%252b9'],
    ['in escapes of JSON', '1\\u007cSecret\\u002fWord\\u002b9'],
    ['in escapes of HTML', '1&#124;Secret&#x2f;Word&#43;9'],
  ])('takes its word out %s, wherever it is cut', (_case, echo) => {
    const lengths = Array.from({ length: echo.length + 1 }, (_, length) => length)

    const shown = lengths.map((length) => redact(printable(`${echo} and more`, length), TOKEN))

    expect(shown.filter((text) => /secret/i.test(text))).toEqual([])
  })

  it.each([
    ['a word that only begins like it', 'no user for 1|Secret/Other'],
    ['a short piece of it', 'no user for 1|Sec...'],
    ['white space', ' no\tuser\n  at all '],
  ])('leaves %s alone', (_case, text) => {
    expect(redact(text, TOKEN)).toBe(text)
  })

  it('may hold backslashes, which are doubled where they are escaped', () => {
    const token = 'Domain\\\\user\\word'

    expect(redact(`${token} ${JSON.stringify(token)}`, token)).toBe('[token] [token]')
  })

  it('may be beyond ASCII', () => {
    expect(redact('clé=schl%c3%bcssel-1, schlüssel-1', 'schlüssel-1')).toBe('[token] [token]')
  })

  it('may be short, and then each word with it goes', () => {
    expect(redact('no user for a|b, ba%7cb', 'a|b')).toBe('no user for [token] [token]')
  })
})

/** Ways to write a whole text. */
const WAYS: ((text: string) => string)[] = [
  (text) => text.toUpperCase(),
  encodeURIComponent,
  (text) => JSON.stringify(text).slice(1, -1).replaceAll('/', '\\/'),
  (text) => text.replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`),
  (text) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;'),
]

/** As Sanctum, Passport and most others make them: nothing in them looks like an escape. */
const visible = fc
  .string({
    unit: fc.integer({ min: 0x21, max: 0x7e }).map((code) => String.fromCharCode(code)),
    minLength: 12,
    maxLength: 200,
  })
  .map((token) => token.replace(/[%\\&+]/g, '|'))

describe('any token', () => {
  it('goes with its word, however a text with it is encoded', () => {
    fc.assert(
      fc.property(visible, fc.array(fc.constantFrom(...WAYS), { maxLength: 4 }), (token, ways) => {
        const echo = ways.reduce((text, encode) => encode(text), token)

        expect(redact(`no user for ${echo} (${echo})`, token)).toBe('no user for [token] [token]')
      }),
      { numRuns: 500 },
    )
  })

  it('goes with its word in base64, whatever is around it', () => {
    fc.assert(
      fc.property(visible, fc.string(), fc.string(), (token, before, after) => {
        expect(redact(inBase64(before + token + after), token)).toBe('[token]')
      }),
    )
  })

  it.each([
    ['the token over and over', 'a'.repeat(8192), 'a'.repeat(200_000)],
    ['backslashes', `${'\\'.repeat(8000)}u0061bcdefghijkl`, '\\'.repeat(200_000)],
    ['escapes of HTML that never end', '&#x'.repeat(2700), '&#x0000000'.repeat(20_000)],
  ])('is found in time linear in the text: %s', (_what, token, text) => {
    // If time grew with the product of both lengths, these would take hours.
    expect(redact(text, token)).not.toContain(token)
  })
})
