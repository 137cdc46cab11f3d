import { describe, expect, it } from 'vitest'
import { asksForPause } from '../../src/api/rate/budget.ts'
import { withPageContext } from '../../src/api/response-errors.ts'
import { JobError, RateLimitedError, RetryableError, TokenRefusedError } from '../../src/errors.ts'
import { createJob } from './helpers/job.ts'

const TOKEN = '12|s3cr3t-t0ken'

const NOTHING = { limit: null, remaining: null, resetMs: null, retryAfterMs: null }
const MAX_WAIT = 900_000

function inContext(error: unknown): unknown {
  return withPageContext(error, createJob(), 7, TOKEN)
}

describe('an error with the context of its page', () => {
  it.each<[string, Error, Error]>([
    [
      'a 429',
      new RateLimitedError(`it said ${TOKEN}`),
      new RateLimitedError('acme orders page 7: it said [token]'),
    ],
    [
      'an answer that breaks off',
      new RetryableError('BAD_RESPONSE', 'it breaks off'),
      new RetryableError('BAD_RESPONSE', 'acme orders page 7: it breaks off'),
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
