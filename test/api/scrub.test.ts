import { describe, expect, it } from 'vitest'
import { scrub } from '../../src/api/scrub.ts'
import { printable } from '../../src/text.ts'

const TOKEN = '1|Secret/Word+9'

describe('a token in a text', () => {
  it.each([
    ['as it is', '1|Secret/Word+9'],
    ['in other capitals', '1|sECRET/wORD+9'],
    ['encoded', '1%7CSecret%2FWord%2B9'],
    ['encoded in small letters', '1%7csecret%2fword%2b9'],
    ['encoded in part', '1%7CSecret/Word+9'],
    ['encoded without need', '%31%7c%53ecret%2fWor%64%2b9'],
    ['encoded twice', '1%257CSecret%252FWord%252b9'],
    ['encoded three times', '1%25257CSecret%25252FWord%25252B9'],
    ['with escaped slashes', '1|Secret\\/Word+9'],
    ['with slashes escaped twice', '1|Secret\\\\\\/Word+9'],
    ['in escapes of JSON', '1\\u007cSecret\\u002FWord\\u002b9'],
    ['in escapes of JSON, escaped again', '1\\\\u007cSecret\\\\u002fWord+9'],
    ['in escapes of HTML', '1&#124;Secret&#x2F;Word&#43;9'],
    ['in a mixture of all', '1%7cSecret\\/Word\\u002B9'],
    ['decoded as a query', '1|Secret/Word 9'],
    ['in part', '1|Secret/Word'],
  ])('is not told %s', (_case, echo) => {
    expect(scrub(`no user for ${echo}, nor ${echo}`, TOKEN)).toBe('no user for [token], nor [token]')
  })

  it.each([
    ['as it is', TOKEN],
    ['encoded', '1%7cSecret%2fWord%2b9'],
    ['encoded twice', '1%257cSecret%252fWord%252b9'],
    ['in escapes of JSON', '1\\u007cSecret\\u002fWord\\u002b9'],
    ['in escapes of HTML', '1&#124;Secret&#x2f;Word&#43;9'],
  ])('is not told %s, wherever it is cut', (_case, echo) => {
    const lengths = Array.from({ length: echo.length + 1 }, (_, length) => length)

    const told = lengths.map((length) => scrub(printable(`${echo} and more`, length), TOKEN))

    expect(told.filter((text) => /secret/i.test(text))).toEqual([])
  })

  it.each([
    ['a text without it', 'The server is down for maintenance...'],
    ['a word that only begins like it', '1|Secret/Other'],
    ['a short piece of it', '1|Sec...'],
  ])('leaves %s alone', (_case, text) => {
    expect(scrub(text, TOKEN)).toBe(text)
  })

  it.each(['', 'a', 'ab', 'abc', 'user:'])('is not told in base64, behind %j', (before) => {
    const echo = Buffer.from(`${before}${TOKEN}`)
    const inBase64 = [echo.toString('base64'), echo.toString('base64url')]

    const shown = inBase64.map((text) => scrub(`no user for ${text}`, TOKEN))

    for (const text of shown) expect(text).toMatch(/^no user for .{0,8}\[token\].{0,4}$/)
  })

  it('may hold what patterns are made of', () => {
    const token = '(a+)*[x]$^{2}.?\\%25&'

    expect(scrub(`<${token}> <${encodeURIComponent(token).toLowerCase()}>`, token)).toBe(
      '<[token]> <[token]>',
    )
  })

  it('may hold backslashes, which are doubled where they are escaped', () => {
    const token = 'Domain\\\\user\\word'

    expect(scrub(`${token} ${JSON.stringify(token)}`, token)).toBe('[token] "[token]"')
  })

  it('may be beyond ASCII', () => {
    expect(scrub('clé=schl%c3%bcssel-1, schlüssel-1', 'schlüssel-1')).toBe('clé=[token], [token]')
  })

  it('may be short, and is then cut no shorter', () => {
    expect(scrub('a|b a%7cb a|... x', 'a|b')).toBe('[token] [token] a|... x')
  })

  it('may be as long as a header takes', () => {
    const token = 'eyJhbGciOi|'.repeat(700)

    expect(scrub(`${token} (${encodeURIComponent(token)} ${printable(token, 80)}`, token)).toBe(
      '[token] ([token] [token]...',
    )
  })

  it('that is none takes nothing away', () => {
    expect(scrub('a text', '')).toBe('a text')
  })
})
