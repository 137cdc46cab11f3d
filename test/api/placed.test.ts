import { describe, expect, it } from 'vitest'
import { EnvelopeError } from '../../src/api/envelope-error.ts'
import { asFinal, placed } from '../../src/api/placed.ts'
import { JobError, RateLimitedError, RetryableError, TokenRefusedError } from '../../src/errors.ts'
import { createJob } from './helpers/job.ts'

const TOKEN = '12|s3cr3t-t0ken'

function place(error: unknown): unknown {
  return placed(error, createJob(), 7, TOKEN)
}

describe('an error with its place', () => {
  it.each<[string, Error, Error]>([
    [
      'one that may pass',
      new RetryableError('SERVER_ERROR', `it said ${TOKEN}`, 500),
      new RetryableError('SERVER_ERROR', 'acme orders page 7: it said [token]', 500),
    ],
    [
      'a 429',
      new RateLimitedError(`it said ${TOKEN}`),
      new RateLimitedError('acme orders page 7: it said [token]'),
    ],
    [
      'one that does not pass',
      new JobError('FORBIDDEN', `it said ${TOKEN}`),
      new JobError('FORBIDDEN', 'acme orders page 7: it said [token]'),
    ],
    [
      'an envelope that breaks off',
      new EnvelopeError('it breaks off', true),
      new RetryableError('BAD_RESPONSE', 'acme orders page 7: it breaks off'),
    ],
    [
      'an envelope that is none',
      new EnvelopeError('it is none'),
      new JobError('BAD_RESPONSE', 'acme orders page 7: it is none'),
    ],
  ])('is of the same kind, without the token: %s', (_what, error, expected) => {
    const found = place(error)

    expect(found).toEqual(expected)
    expect(found).toBeInstanceOf(expected.constructor)
  })

  it('is INTERNAL where nobody foresaw it, its stack without the token, too', () => {
    const found = place(new TypeError(`cannot read ${TOKEN}`)) as JobError

    expect(found).toEqual(new JobError('INTERNAL', 'acme orders page 7: unexpected: cannot read [token]'))
    expect(found.stack).toContain('TypeError: cannot read [token]')
    expect(found.stack).not.toContain(TOKEN)
  })

  it.each([
    ['the word of a stop', new DOMException('stopped', 'AbortError')],
    ['a refused token', new TokenRefusedError('refused')],
    ['what is no error', 'SIGTERM'],
  ])('is left as it is: %s', (_what, error) => {
    expect(place(error)).toBe(error)
  })
})

describe('an error that is final', () => {
  it.each([
    [new RetryableError('TIMEOUT', 'no answer', 500), new JobError('TIMEOUT', 'no answer')],
    [new RateLimitedError('too many'), new JobError('RATE_LIMITED', 'too many')],
  ])('is not tried again: %s', (error, expected) => {
    const found = asFinal(error)

    expect(found).toEqual(expected)
    expect(found).toBeInstanceOf(JobError)
  })

  it.each([new TokenRefusedError('refused'), new TypeError('a mistake')])(
    'is left as it is where it was never tried again: %s',
    (error) => {
      expect(asFinal(error)).toBe(error)
    },
  )
})
