import got, { type Got, type PlainResponse, type Request, RequestError } from 'got'
import { JobError, KnownError, RetryableError } from '../errors.ts'
import { type Connections, createConnectionPool } from './connections.ts'
import type { Headers } from './rate-headers.ts'

export interface ExchangeOptions {
  /** The whole exchange: connecting, sending, and the last byte of the body. */
  timeoutMs: number
  /** After decompression. */
  maxResponseBytes: number
  userAgent: string
}

export interface Response {
  status: number
  headers: Headers
  body: Uint8Array
}

/**
 * One GET and its answer, whatever its status. Throws RetryableError or JobError whose message is a phrase without a
 * place; got's own errors carry the request's headers and so the token, and are never handed on, not even as a cause.
 * Only an answer with status 2xx is whole. What another one means stands in its status and headers: its body may be
 * empty because it did not come, and of a 401, a 429 and a redirect nobody waits for it.
 */
export type Exchange = (url: URL, headers: Record<string, string>, signal: AbortSignal) => Promise<Response>

/** @param connections Of one list: none of its requests begins before the answer to the one before it was read or given up. */
export function createExchange(
  options: ExchangeOptions,
  connections: Connections = createConnectionPool()(),
): Exchange {
  const client = createClient(options, connections)
  return async (url, headers, signal) => {
    signal.throwIfAborted()
    // As a promise, got takes a tenth of a millisecond more for each request, and tells of no answer before its end.
    const request = client.stream(url, { headers })
    const stop = () => request.destroy()
    signal.addEventListener('abort', stop, { once: true })
    try {
      return await receive(request, options.maxResponseBytes)
    } catch (error) {
      signal.throwIfAborted()
      throw error instanceof KnownError ? error : translate(error, url, options.timeoutMs)
    } finally {
      signal.removeEventListener('abort', stop)
    }
  }
}

/** The answer to a request, as soon as nothing more of it is needed; what is still to come then is cut off. */
function receive(request: Request, maxResponseBytes: number): Promise<Response> {
  return new Promise((resolve, reject) => {
    const pieces: Uint8Array[] = []
    let head: Omit<Response, 'body'> | null = null
    let bytes = 0
    const most = () => (isSuccess(head?.status) ? maxResponseBytes : LONGEST_REFUSAL)
    const cut = (error: unknown) => {
      if (head && !isSuccess(head.status)) resolve({ ...head, body: new Uint8Array() })
      else reject(error)
      request.destroy()
    }
    request.once('response', ({ statusCode: status, headers }: PlainResponse) => {
      head = { status, headers }
      if (isToldByStatus(status)) cut(null)
    })
    request.on('data', (piece: Uint8Array) => {
      pieces.push(piece)
      bytes += piece.length
      if (bytes > most()) cut(largerThan(maxResponseBytes))
    })
    request.once('end', () => {
      const [first = new Uint8Array()] = pieces
      if (head) resolve({ ...head, body: pieces.length > 1 ? Buffer.concat(pieces) : first })
    })
    // Heard to the last, since an error that nobody hears ends the process.
    request.on('error', cut)
    // What the caller stopped ends without a word.
    request.once('close', cut)
  })
}

/** A refusal that is longer is a page of somebody's stack trace, and nothing that is shown. */
const LONGEST_REFUSAL = 100_000

function isSuccess(status: number | undefined): boolean {
  return status !== undefined && status >= 200 && status <= 299
}

/** After these nothing may be sent that was not on its way before; their body, which may never end, says no more. */
function isToldByStatus(status: number): boolean {
  return status === 401 || status === 429 || (status >= 300 && status <= 399)
}

function createClient(options: ExchangeOptions, { agent }: Connections): Got {
  return got.extend({
    agent,
    // A redirect would carry the organization header to wherever it leads, and turn a good token into a 401.
    followRedirect: false,
    // Two layers that retry multiply: the retry room is the only one that does.
    retry: { limit: 0 },
    throwHttpErrors: false,
    timeout: { request: options.timeoutMs },
    // Laravel answers errors in JSON only where this stands first and alone.
    headers: { accept: 'application/json', 'user-agent': options.userAgent },
  })
}

function largerThan(bytes: number): JobError {
  return new JobError('BAD_RESPONSE', `the answer is larger than api.maxResponseBytes (${bytes} bytes)`)
}

/** OpenSSL's words for a certificate that does not hold, and Node's own. */
const REFUSED_CERTIFICATE =
  /CERT|^UNABLE_TO_|^CRL_|^ERROR_IN_CRL_|^INVALID_(CA|PURPOSE)$|^PATH_LENGTH_EXCEEDED$|^HOSTNAME_MISMATCH$/

/** zlib's words for gzip, brotli and zstd that broke off, or were damaged, on their way. */
const DAMAGED = /^(Z_|ERR__|ZSTD_)/

/** What the commonest codes of a network that fails mean, and where to look. */
const HINTS: Readonly<Record<string, string>> = {
  ECONNREFUSED: ', where nothing listens',
  ENOTFOUND: ', a name that is not known',
  EAI_AGAIN: ', a name that could not be looked up',
  EPROTO: ', which speaks no TLS',
}

function translate(error: unknown, url: URL, timeoutMs: number): KnownError {
  if (!(error instanceof RequestError))
    return new JobError('INTERNAL', `the request failed in an unforeseen way (${nameOf(error)})`)
  const code = codeOf(error)
  if (error.name === 'TimeoutError') {
    return new RetryableError('TIMEOUT', `no whole answer within api.timeout (${timeoutMs} ms)`)
  }
  if (REFUSED_CERTIFICATE.test(code))
    return new JobError('NETWORK', `the server's certificate is refused (${code})`)
  if (code === 'HPE_HEADER_OVERFLOW') return new JobError('BAD_RESPONSE', 'the answer has endless headers')
  if (DAMAGED.test(code))
    return new RetryableError('BAD_RESPONSE', `the compressed answer breaks off (${code})`)
  return new RetryableError('NETWORK', `the network failed (${code}) at ${url.origin}${HINTS[code] ?? ''}`)
}

/** What went wrong while the body was read, got tells in the cause alone. */
function codeOf({ code, cause }: RequestError): string {
  if (code !== 'ERR_READING_RESPONSE_STREAM') return code
  return cause instanceof Error && 'code' in cause ? String(cause.code) : code
}

function nameOf(error: unknown): string {
  return error instanceof Error ? error.name : typeof error
}
