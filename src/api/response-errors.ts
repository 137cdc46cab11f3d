import type { RequestError } from 'got'
import { type ErrorCode, JobError, KnownError, RetryableError } from '../errors.ts'
import { isJsonObject, type JsonValue } from '../json/value.ts'
import type { Job } from '../sync/types.ts'
import { jobName, printable } from '../text.ts'
import type { Response } from './http.ts'

/** What a request may fail of other than the network, by the codes of Node, its parser of HTTP, zlib and OpenSSL. */
const CAUSES: readonly { of: RegExp; code: ErrorCode; passes: boolean; says: string }[] = [
  {
    of: /^HPE_/,
    code: 'BAD_RESPONSE',
    passes: false,
    says: 'the answer is not HTTP, or breaks its rules; look at the port in api.baseUrl, or at a proxy before the API',
  },
  {
    of: /^(?:Z_|ERR__|ZSTD_)/,
    code: 'BAD_RESPONSE',
    passes: true,
    says: 'the compressed answer breaks off or is damaged',
  },
  {
    of: /wrong version number/i,
    code: 'NETWORK',
    passes: false,
    says: 'the server speaks no TLS; look at http or https, and at the port, in api.baseUrl',
  },
  {
    of: /CERT|^UNABLE_TO_|^CRL_|^HOSTNAME_MISMATCH|^INVALID_(?:CA|PURPOSE)|^PATH_LENGTH_EXCEEDED/,
    code: 'NETWORK',
    passes: false,
    says: "the server's certificate is refused; look at it, at api.baseUrl, at this machine's clock, or name your own authority in NODE_EXTRA_CA_CERTS",
  },
]

/** What the commonest codes of a network mean. */
const HINTS: Readonly<Record<string, string>> = {
  ECONNREFUSED: ', where nothing listens',
  ECONNRESET: ', which closed the connection',
  ENOTFOUND: ', a name that is not known',
  EAI_AGAIN: ', a name that could not be looked up',
}

/** The error of a request that got no whole answer: what happened, and whether that may pass by itself. */
export function errorOfRequest(error: RequestError, { origin }: URL, timeoutMs: number): KnownError {
  if (error.name === 'TimeoutError')
    return new RetryableError('TIMEOUT', `no whole answer within api.timeout (${timeoutMs} ms)`)
  // While the body is read, got puts the real code into the cause only.
  const { cause } = error
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : error.code
  // The message may hold what was sent; OpenSSL's reason does not.
  const reason = /SSL routines:[^:]*:([^:]*)/.exec(error.message)?.[1]
  const detail = reason === undefined ? code : `${code}: ${reason}`
  const known = CAUSES.find(({ of }) => of.test(detail))
  if (!known)
    return new RetryableError('NETWORK', `the network failed (${detail}) at ${origin}${HINTS[code] ?? ''}`)
  const message = `${known.says} (${detail} at ${origin})`
  return known.passes ? new RetryableError(known.code, message) : new JobError(known.code, message)
}

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
      `the token's user is not a member of this organization ${says}; let the user join it, or look at the token and the id ${id}`,
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
      ? `the server answered ${says}; look at api.baseUrl and the path of the list, or at a proxy before the API`
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
  const json = parsed(text)
  const [, title] = /<title>([^<]{1,500})/i.exec(text.slice(0, 10_000)) ?? []
  const said = json === undefined ? (title ?? /^[^\n]{1,100}$/.exec(text)?.[0]) : saidIn(json)
  return said === undefined ? '' : ` and says: ${printable(said.trim())}`
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

/** The error with the page in front of its message, and without a token that the server may have echoed. */
export function withPageContext(error: unknown, job: Job, page: number, token: string): unknown {
  const message = (text: string) => `${jobName(job)} page ${page}: ${redact(text, token)}`
  if (error instanceof RetryableError) return new RetryableError(error.code, message(error.message))
  if (error instanceof JobError) return new JobError(error.code, message(error.message))
  if (!(error instanceof Error) || error instanceof KnownError || error.name === 'AbortError') return error
  // An unexpected error may hold anything, such as the request's headers.
  const known = new JobError('INTERNAL', message(`unexpected: ${printable(error.message, 500)}`))
  known.stack = redact(error.stack ?? '', token)
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
