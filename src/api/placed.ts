import { JobError, PassingError, ThrottledError } from '../errors.ts'
import type { Job } from '../sync/types.ts'
import { EnvelopeError } from './envelope.ts'
import { scrub } from './scrub.ts'

/** Nothing is tried again on a token that is held. */
export function asFinal(error: unknown): unknown {
  const isPassing = error instanceof PassingError || error instanceof ThrottledError
  return isPassing ? new JobError(error.code, error.message) : error
}

/** The same error with its place in front, and the token scrubbed from whatever a server may have echoed. */
export function placed(error: unknown, job: Job, page: number, token: string): unknown {
  const place = `${job.organization.name} ${job.collection.name} page ${page}`
  const message = (text: string) => `${place}: ${scrub(text, token)}`
  if (error instanceof EnvelopeError) {
    return error.passing
      ? new PassingError('BAD_RESPONSE', message(error.message))
      : new JobError('BAD_RESPONSE', message(error.message))
  }
  if (error instanceof PassingError)
    return new PassingError(error.code, message(error.message), error.retryAfterMs)
  if (error instanceof ThrottledError) return new ThrottledError(message(error.message))
  if (error instanceof JobError) return new JobError(error.code, message(error.message))
  return error
}
