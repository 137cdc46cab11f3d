import { JobError, KnownError, RetryableError } from '../errors.ts'
import type { JsonValue } from '../json/value.ts'
import type { Job } from '../sync/types.ts'
import { jobName, printable } from '../text.ts'
import { IF_NOT_THE_API, saidIn, titleOf } from './body.ts'
import type { Response } from './http.ts'

/** True when the server cannot answer now. If it names a time, nothing is sent before. */
export function isFailure(status: number): boolean {
  return status === 408 || (status >= 500 && status <= 599)
}

/** The error for a status other than 2xx, 401 and 429. */
export function errorOfStatus(response: Response, job: Job, baseUrl: string): KnownError {
  const { status } = response
  const says = `(${status})${whatItSays(response)}`
  const { id } = job.organization
  if (isFailure(status)) return new RetryableError('SERVER_ERROR', `the server failed ${says}`)
  // The API's own refusals are JSON.
  const look = (todo: string) => (isPage(response) ? ELSEWHERE : todo)
  if (status === 400)
    return new JobError(
      'BAD_REQUEST',
      `the server rejected the request as invalid ${says}; ${look('look at the filters')}`,
    )
  if (status === 403) {
    const who = isPage(response)
      ? 'access is refused'
      : "the token's user is not a member of this organization"
    const todo = look(`let the user join it, or look at the token and the id ${id}`)
    return new JobError('FORBIDDEN', `${who} ${says}; ${todo}`)
  }
  if (status === 404)
    return new JobError(
      'ORGANIZATION_NOT_FOUND',
      `not found ${says}; either the organization's id is wrong (${id}) or the address (${baseUrl}${job.collection.path})`,
    )
  const isRedirect = status >= 300 && status <= 399 && status !== 304
  const text = isRedirect
    ? `the server redirects (${status})${whereTo(response, baseUrl)}, which is never followed; look at api.baseUrl`
    : `the server answered ${says}; ${IF_NOT_THE_API}`
  return new JobError('UNEXPECTED_STATUS', text)
}

/** Without its query, which may hold anything. */
function whereTo({ headers: { location } }: Response, baseUrl: string): string {
  const to = typeof location === 'string' ? URL.parse(location, baseUrl) : null
  return to === null ? '' : ` to ${printable(to.origin + to.pathname, 120)}`
}

/** What to do about a refusal that is no JSON: the API's own are. */
export const ELSEWHERE =
  'it comes from a firewall or proxy before the API, or api.baseUrl is not the API: look there'

/**
 * The `message` of a JSON error body; of what comes from something before the API, the title of a page of HTML, or a short line.
 * A longer body is never shown: debug pages may hold anything.
 */
export function whatItSays(response: Response): string {
  const text = new TextDecoder().decode(response.body).trim()
  const title = titleOf(text)
  if (title !== null) return ` with a page of HTML${title}`
  const said = isPage(response) ? (/^[^\n]{1,100}$/.exec(text)?.[0] ?? null) : saidIn(parsed(text))
  return said === null ? '' : ` and says: ${printable(said)}`
}

/** Whether something else than the API answered, with a text that is not JSON. */
export function isPage({ body }: Response): boolean {
  const text = new TextDecoder().decode(body).trim()
  return text !== '' && parsed(text) === undefined
}

/** Undefined for what is not JSON. */
function parsed(text: string): JsonValue | undefined {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** The error with the page in front of its message, and without a token that the server may have echoed. */
export function withPageContext(error: unknown, job: Job, page: number, token: string): unknown {
  const context = `${jobName(job)} page ${page}`
  const message = (text: string) => `${context}: ${redact(text, token)}`
  if (error instanceof RetryableError) return new RetryableError(error.code, message(error.message))
  if (error instanceof JobError) return new JobError(error.code, message(error.message))
  const isUnexpected = error instanceof Error && !(error instanceof KnownError) && error.name !== 'AbortError'
  return isUnexpected ? unexpected(error, message, token) : error
}

/** An unexpected error may hold anything, such as the request's headers. */
function unexpected(error: Error, message: (text: string) => string, token: string): JobError {
  const known = new JobError('INTERNAL', message(`unexpected: ${printable(error.message, 500)}`))
  if (error.stack) known.stack = redact(error.stack, token)
  return known
}

/** So many consecutive characters of a token, from anywhere in it, are no coincidence. */
const TELLING = 12

/**
 * The text without each word that holds the token or a piece of it, as it is, percent-encoded, in other case or with
 * backslashes: a server may echo the request's headers.
 */
export function redact(text: string, token: string): string {
  if (token === '') return text
  const pieces = [token, encodeURIComponent(token)].flatMap((one) => piecesOf(folded(one)))
  return text.replace(/\S+/g, (word) => {
    const read = folded(word)
    return pieces.some((piece) => read.includes(piece)) ? '[token]' : word
  })
}

/** The number of backslashes only says how often a text was quoted. */
function folded(text: string): string {
  return text.toLowerCase().replaceAll('\\', '')
}

function piecesOf(token: string): string[] {
  const length = Math.min(token.length, TELLING)
  return Array.from({ length: token.length - length + 1 }, (_, at) => token.slice(at, at + length))
}
