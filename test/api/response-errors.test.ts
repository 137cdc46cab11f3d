import { describe, expect, it } from 'vitest'
import { asksForPause } from '../../src/api/client.ts'
import { redact, withPageContext } from '../../src/api/response-errors.ts'
import { JobError, RetryableError, TokenRefusedError } from '../../src/errors.ts'
import { createJob } from './helpers/job.ts'

const TOKEN = '12|s3cr3t/t0ken-that-nobody-may-see'

const NOTHING = { limit: null, remaining: null, resetMs: null, retryAfterMs: null }
const MAX_WAIT = 900_000

function inContext(error: unknown): unknown {
  return withPageContext(error, createJob(), 7, TOKEN)
}

describe('an error with the context of its page', () => {
  it.each<[string, Error, Error]>([
    [
      'an answer that breaks off',
      new RetryableError('BAD_RESPONSE', `it breaks off at ${TOKEN}`),
      new RetryableError('BAD_RESPONSE', 'acme orders page 7: it breaks off at [token]'),
    ],
    [
      'an answer that is no list',
      new JobError('BAD_RESPONSE', 'it is HTML'),
      new JobError('BAD_RESPONSE', 'acme orders page 7: it is HTML'),
    ],
  ])('is of the same kind, without the token: %s', (_what, error, expected) => {
    const found = inContext(error)

    expect(found).toEqual(expected)
    expect(found).toBeInstanceOf(expected.constructor)
  })

  it('is INTERNAL if it is unexpected, with the token redacted from its stack, too', () => {
    const found = inContext(new TypeError(`cannot read ${TOKEN}`)) as JobError

    expect(found).toEqual(new JobError('INTERNAL', 'acme orders page 7: unexpected: cannot read [token]'))
    expect(found.stack).toContain('TypeError: cannot read [token]')
    expect(found.stack).not.toContain(TOKEN)
  })

  it.each([
    ['an abort', new DOMException('stopped', 'AbortError')],
    ['a refused token', new TokenRefusedError('refused')],
    ['what is no error', 'SIGTERM'],
  ])('is left as it is: %s', (_what, error) => {
    expect(inContext(error)).toBe(error)
  })
})

describe('an answer that asks for a pause', () => {
  it.each<[number, number | null, boolean]>([
    [429, null, true],
    [429, 0, true],
    [503, MAX_WAIT + 1, true],
    [408, MAX_WAIT + 1, true],
    [503, MAX_WAIT, false],
    [503, null, false],
    [500, null, false],
    [404, MAX_WAIT + 1, false],
    [200, MAX_WAIT + 1, false],
  ])('is one with %i and Retry-After %s: %s', (status, retryAfterMs, expected) => {
    expect(asksForPause(status, { ...NOTHING, retryAfterMs }, MAX_WAIT)).toBe(expected)
  })
})

describe('a text without the token', () => {
  it.each([
    ['the token', `no user for ${TOKEN}, sorry`, 'no user for [token] sorry'],
    ['a word around it', `you sent "Bearer:${TOKEN}"!`, 'you sent [token]'],
    ['other case', TOKEN.toUpperCase(), '[token]'],
    ['URI encoding', `/login?token=${encodeURIComponent(TOKEN)}&x`, '[token]'],
    ['URI encoding in small letters', encodeURIComponent(TOKEN).toLowerCase(), '[token]'],
    ['slashes as PHP writes them', JSON.stringify({ t: TOKEN }).replaceAll('/', '\\/'), '[token]'],
    ['12 characters of its beginning', `${TOKEN.slice(0, 12)}...`, '[token]'],
    ['12 characters of its end', `...${TOKEN.slice(-12)}`, '[token]'],
    ['12 characters of its encoding', encodeURIComponent(TOKEN).slice(3, 15), '[token]'],
  ])('hides each word that holds %s', (_case, text, shown) => {
    expect(redact(text, TOKEN)).toBe(shown)
  })

  it.each([
    ['11 characters of it', TOKEN.slice(5, 16), TOKEN],
    ['other words', 'Unauthenticated: 12 of them', TOKEN],
    ['everything, of an empty token', 'a text', ''],
  ])('leaves %s', (_case, text, token) => {
    expect(redact(text, token)).toBe(text)
  })

  it('hides a token that is shorter than a piece, as a whole', () => {
    expect(redact('x short! y', 'short')).toBe('x [token] y')
  })
})
