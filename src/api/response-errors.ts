import { JobError, type KnownError, RetryableError } from '../errors.ts'
import { isJsonObject, type JsonValue } from '../json/value.ts'
import type { Job } from '../sync/types.ts'
import { printable } from '../text.ts'
import type { Response } from './http.ts'

/** What to do about an answer that the API would not give. */
export const LOOK =
  'look at the server, at a firewall or proxy before it, and whether api.baseUrl and the path lead there'

/** True when the server cannot answer now. If it names a time, nothing is sent before. */
export function isFailure(status: number): boolean {
  return status === 408 || (status >= 500 && status <= 599)
}

/** The error for a status other than 2xx, 401 and 429. */
export function errorOfStatus(response: Response, job: Job, baseUrl: string): KnownError {
  const { status } = response
  const says = `(${status})${whatItSays(textOf(response))}`
  const { id } = job.organization
  if (isFailure(status)) return new RetryableError('SERVER_ERROR', `the server failed ${says}`)
  if (status === 400)
    return new JobError(
      'BAD_REQUEST',
      `the server rejected the request as invalid ${says}; look at the filters`,
    )
  if (status === 403)
    return new JobError(
      'FORBIDDEN',
      `access is refused ${says}; let the token's user join this organization, or look at the token and the id ${id}`,
    )
  if (status === 404)
    return new JobError(
      'ORGANIZATION_NOT_FOUND',
      `not found ${says}; either the organization's id is wrong (${id}) or the address (${baseUrl}${job.collection.path})`,
    )
  const to = redirectOf(response, baseUrl)
  return new JobError(
    'UNEXPECTED_STATUS',
    to === null
      ? `the server answered ${says}; ${LOOK}`
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

/**
 * What an answer says in words, for a message: the `message` of JSON, the title of a page of HTML, or a short line. A longer text is
 * never shown: debug pages may hold anything.
 */
export function whatItSays(text: string): string {
  const title = titleOf(text)
  if (title !== null) return ` with a page of HTML${title}`
  const said = saidIn(text)
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

/** The `message` of JSON, else its `error`; of another text a short line. */
function saidIn(text: string): string | undefined {
  let json: JsonValue
  try {
    json = JSON.parse(text)
  } catch {
    return /^[^\n]{1,100}$/.exec(text)?.[0]
  }
  const { message, error } = isJsonObject(json) ? json : {}
  return [message, error].find((one) => typeof one === 'string' && one !== '') as string | undefined
}
