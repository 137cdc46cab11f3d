import { Agent as HttpAgent } from 'node:http'
import { Agent as HttpsAgent } from 'node:https'
import got, { type Got, RequestError } from 'got'
import { JobError, type KnownError, PassingError } from '../errors.ts'
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
 * One GET and its answer, whatever its status. Throws PassingError or JobError whose message is a phrase without a
 * place; got's own errors carry the request's headers and so the token, and are never handed on, not even as a cause.
 * Only an answer with status 2xx is whole. What another one means stands in its status and headers: its body may be
 * empty because it did not come, and of a 401, a 429 and a redirect nobody waits for it.
 */
export type Exchange = (url: URL, headers: Record<string, string>, signal: AbortSignal) => Promise<Response>

/** The beginning of an answer, once it is there, and why its body was not waited for. */
interface Progress {
  head: { status: number; headers: Headers } | null
  cut: 'too large' | 'told by its status' | null
}

export function createExchange(options: ExchangeOptions): Exchange {
  const client = createClient(options)
  return async (url, headers, signal) => {
    const stop = new AbortController()
    const stopWithCaller = () => stop.abort()
    signal.throwIfAborted()
    signal.addEventListener('abort', stopWithCaller, { once: true })
    const progress: Progress = { head: null, cut: null }
    const cut = (why: Progress['cut']) => {
      progress.cut = why
      stop.abort()
    }
    try {
      const request = client(url, { headers, signal: stop.signal })
      void request.on('request', (sent) => {
        sent.once('response', ({ statusCode: status = 0, headers: told }) => {
          progress.head = { status, headers: told }
          if (isToldByStatus(status)) cut('told by its status')
        })
      })
      void request.on('downloadProgress', ({ transferred }) => {
        const most = isSuccess(progress.head?.status) ? options.maxResponseBytes : LONGEST_REFUSAL
        if (transferred > most) cut('too large')
      })
      const response = await request
      return { status: response.statusCode, headers: response.headers, body: response.rawBody }
    } catch (error) {
      signal.throwIfAborted()
      const { head } = progress
      if (head && !isSuccess(head.status)) return { ...head, body: new Uint8Array() }
      throw progress.cut ? largerThan(options.maxResponseBytes) : translate(error, url, options.timeoutMs)
    } finally {
      signal.removeEventListener('abort', stopWithCaller)
    }
  }
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

function createClient(options: ExchangeOptions): Got {
  return got.extend({
    agent: { http: new HttpAgent({ keepAlive: true }), https: new HttpsAgent({ keepAlive: true }) },
    // A redirect would carry the organization header to wherever it leads, and turn a good token into a 401.
    followRedirect: false,
    // Two layers that retry multiply: the retry room is the only one that does.
    retry: { limit: 0 },
    throwHttpErrors: false,
    timeout: { request: options.timeoutMs },
    responseType: 'buffer',
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
    return new PassingError('TIMEOUT', `no whole answer within api.timeout (${timeoutMs} ms)`)
  }
  if (REFUSED_CERTIFICATE.test(code))
    return new JobError('NETWORK', `the server's certificate is refused (${code})`)
  if (code === 'HPE_HEADER_OVERFLOW') return new JobError('BAD_RESPONSE', 'the answer has endless headers')
  if (DAMAGED.test(code))
    return new PassingError('BAD_RESPONSE', `the compressed answer breaks off (${code})`)
  return new PassingError('NETWORK', `the network failed (${code}) at ${url.origin}${HINTS[code] ?? ''}`)
}

/** What went wrong while the body was read, got tells in the cause alone. */
function codeOf({ code, cause }: RequestError): string {
  if (code !== 'ERR_READING_RESPONSE_STREAM') return code
  return cause instanceof Error && 'code' in cause ? String(cause.code) : code
}

function nameOf(error: unknown): string {
  return error instanceof Error ? error.name : typeof error
}
