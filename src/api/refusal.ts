import { JobError, type KnownError, RetryableError } from '../errors.ts'
import type { Job } from '../sync/types.ts'
import { printable } from '../text.ts'
import type { Response } from './exchange.ts'
import type { RateHeaders } from './rate-headers.ts'

/** A 5xx that asks for a longer silence than we wait for concerns the rate limiter as well, which remembers the silence. */
export function asksForPause(status: number, { retryAfterMs }: RateHeaders, maxWaitMs: number): boolean {
  return status === 429 || (isFailure(status) && retryAfterMs !== null && retryAfterMs > maxWaitMs)
}

/** The server cannot answer now; when it says for how long, nobody is to ask it before. */
export function isFailure(status: number): boolean {
  return status === 408 || status >= 500
}

/** What a status other than 2xx, 401 and 429 means. */
export function refusalOf(response: Response, announced: RateHeaders, job: Job, baseUrl: string): KnownError {
  const { status } = response
  const says = serverMessage(response)
  const { id } = job.organization
  if (status === 400) {
    return new JobError('BAD_REQUEST', `the server calls the request wrong (400)${says}; look at the filters`)
  }
  if (status === 403) {
    return new JobError(
      'FORBIDDEN',
      `the token's user is no member of this organization (403)${says}; let the user join it, or look at the token and the id ${id}`,
    )
  }
  if (status === 404) {
    return new JobError(
      'ORGANIZATION_NOT_FOUND',
      `not found (404)${says}; either the organization's id is wrong (${id}) or the address (${baseUrl}${job.collection.path})`,
    )
  }
  if (isFailure(status)) {
    return new RetryableError('SERVER_ERROR', `the server failed (${status})${says}`, announced.retryAfterMs)
  }
  const isRedirect = status >= 300 && status <= 399
  return new JobError(
    'UNEXPECTED_STATUS',
    isRedirect
      ? `the server redirects (${status}), which is never followed; look at api.baseUrl`
      : `the server answered ${status}${says}`,
  )
}

/** The `message` of a JSON error body; bodies themselves are never shown, since debug pages hold anything. */
function serverMessage(response: Response): string {
  try {
    const { message } = JSON.parse(new TextDecoder().decode(response.body))
    return typeof message === 'string' && message !== '' ? ` and says: ${printable(message)}` : ''
  } catch {
    return ''
  }
}
