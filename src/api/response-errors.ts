import { JobError, type KnownError, RetryableError } from '../errors.ts'
import { isJsonObject, type JsonValue } from '../json/value.ts'
import type { Job } from '../sync/types.ts'
import { printable } from '../text.ts'
import type { Response } from './http.ts'

/** What to do about an answer that the API itself would not write. */
export const AT_THE_SERVER = 'look at the server, or at a proxy before it'

/** What to do about an answer to another question than ours. */
const IF_NOT_THE_API = 'look at api.baseUrl and the path of the list, or at a proxy before the API'

/** What to do about a refusal that is no JSON: the API's own are. */
export const ELSEWHERE =
  'it comes from a firewall or proxy before the API, or api.baseUrl is not the API: look there'

/** True when the server cannot answer now. If it names a time, nothing is sent before. */
export function isFailure(status: number): boolean {
  return status === 408 || (status >= 500 && status <= 599)
}

/** The error for a status other than 2xx, 401 and 429. */
export function errorOfStatus(response: Response, job: Job, baseUrl: string): KnownError {
  const { status } = response
  const text = textOf(response)
  // A part of a list may hold items.
  const says = `(${status})${status === 206 ? '' : whatItSays(text)}`
  const { id } = job.organization
  const look = (todo: string) => (isForeign(text) ? ELSEWHERE : todo)
  if (isFailure(status)) return new RetryableError('SERVER_ERROR', `the server failed ${says}`)
  if (status === 400)
    return new JobError(
      'BAD_REQUEST',
      `the server rejected the request as invalid ${says}; ${look('look at the filters')}`,
    )
  if (status === 403) {
    const who = isForeign(text)
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
  const to = redirectOf(response, baseUrl)
  return new JobError(
    'UNEXPECTED_STATUS',
    to === null
      ? `the server answered ${says}; ${IF_NOT_THE_API}`
      : `the server redirects (${status}) to ${to}, which is never followed; look at api.baseUrl`,
  )
}

/** Where a redirect leads, without its query, which may hold anything; null if the answer is none. */
function redirectOf({ status, headers: { location } }: Response, baseUrl: string): string | null {
  const isRedirect = status >= 300 && status <= 399 && typeof location === 'string'
  const to = isRedirect ? URL.parse(location, baseUrl) : null
  return to && printable(to.origin + to.pathname, 120)
}

export function textOf({ body }: Pick<Response, 'body'>): string {
  return new TextDecoder().decode(body).trim()
}

/** True for a text that is no JSON, and so of something else than the API. */
export function isForeign(text: string): boolean {
  return text !== '' && parsed(text) === undefined
}

/**
 * What an answer says in words, for a message: the `message` of JSON, the title of a page of HTML, or a short line. A longer text is
 * never shown: debug pages may hold anything.
 */
export function whatItSays(text: string): string {
  const title = titleOf(text)
  if (title !== null) return ` with a page of HTML${title}`
  const json = parsed(text)
  const said = json === undefined ? /^[^\n]{1,100}$/.exec(text)?.[0] : saidIn(json)
  return said === undefined ? '' : ` and says: ${printable(said.trim())}`
}

const HTML = /^<(?:!--|!doctype html|html|head|title|meta|body|center|div|h\d)/i

/** The title of a page of HTML, in brackets and for a message; empty if it has none, null if the text is no HTML. */
export function titleOf(text: string): string | null {
  if (!HTML.test(text)) return null
  const [, element = ''] = text.slice(0, 10_000).split(/<title/i, 2)
  const title = element.split('<', 1)[0]?.split('>', 2)[1]?.trim()
  return title ? ` (its title: ${printable(title, 80)})` : ''
}

/** The `message` of an answer, else its `error`. */
function saidIn(json: JsonValue): string | undefined {
  const { message, error } = isJsonObject(json) ? json : {}
  return [message, error].find((one) => typeof one === 'string' && one !== '') as string | undefined
}

/** Undefined for what is not JSON. */
function parsed(text: string): JsonValue | undefined {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
