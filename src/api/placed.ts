import { JobError, KnownError, RateLimitedError, RetryableError } from '../errors.ts'
import type { Job } from '../sync/types.ts'
import { printable } from '../text.ts'
import { EnvelopeError } from './envelope-error.ts'
import { scrub } from './scrub.ts'

/** Nothing is tried again on a token that is held. */
export function asFinal(error: unknown): unknown {
  const isPassing = error instanceof RetryableError || error instanceof RateLimitedError
  return isPassing ? new JobError(error.code, error.message) : error
}

/** The same error with its place in front, and the token scrubbed from whatever a server may have echoed. */
export function placed(error: unknown, job: Job, page: number, token: string): unknown {
  const place = `${job.organization.name} ${job.collection.name} page ${page}`
  const message = (text: string) => `${place}: ${scrub(text, token)}`
  if (error instanceof EnvelopeError) {
    return error.passing
      ? new RetryableError('BAD_RESPONSE', message(error.message))
      : new JobError('BAD_RESPONSE', message(error.message))
  }
  if (error instanceof RetryableError)
    return new RetryableError(error.code, message(error.message), error.retryAfterMs)
  if (error instanceof RateLimitedError) return new RateLimitedError(message(error.message))
  if (error instanceof JobError) return new JobError(error.code, message(error.message))
  return isUnforeseen(error) ? unforeseen(error, message, token) : error
}

/** Neither one of ours nor the word of a stop. */
function isUnforeseen(error: unknown): error is Error {
  return error instanceof Error && !(error instanceof KnownError) && error.name !== 'AbortError'
}

/** What nobody foresaw may hold anything, the request's headers too. */
function unforeseen(error: Error, message: (text: string) => string, token: string): JobError {
  const known = new JobError('INTERNAL', message(`unexpected: ${printable(error.message, 500)}`))
  if (error.stack) known.stack = scrub(error.stack, token)
  return known
}
