import { Agent as HttpAgent } from 'node:http'
import { Agent as HttpsAgent } from 'node:https'
import type { Duplex } from 'node:stream'
import got, { type Got, type PlainResponse, type Request, RequestError } from 'got'
import { isCertificateRefused, JobError, KnownError, RetryableError } from '../errors.ts'
import type { Headers } from './rate/headers.ts'

export interface HttpOptions {
  /** For connecting, sending, and receiving the last byte of the body. */
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
 * Sends one GET and returns its response, whatever the status. Only a 2xx response always has
 * its whole body. Throws RetryableError or JobError, whose message does not name the page. got's own errors hold the request's
 * headers, and so the token: they are never passed on, not even as a cause.
 */
export type HttpGet = (url: URL, headers: Record<string, string>, signal: AbortSignal) => Promise<Response>

/** @param connections Of one list, which sends its requests one after another. */
export function createHttpGet(options: HttpOptions, connections: Connections = openConnections()): HttpGet {
  const client = createClient(options, connections)
  return async (url, headers, signal) => {
    signal.throwIfAborted()
    // got's promise takes 0.1 ms more per request, and resolves only after the whole body.
    const request = client.stream(url, { headers })
    const stop = () => request.destroy()
    signal.addEventListener('abort', stop, { once: true })
    try {
      return await receive(request, options.maxResponseBytes)
    } catch (error) {
      signal.throwIfAborted()
      throw error instanceof KnownError ? error : translateRequestError(error, url, options.timeoutMs)
    } finally {
      signal.removeEventListener('abort', stop)
    }
  }
}

function createClient(options: HttpOptions, { agent }: Connections): Got {
  return got.extend({
    agent,
    // A redirect would take the organization header to another address, and turn a good token into a 401.
    followRedirect: false,
    // Two layers of retries multiply: only retry.ts retries.
    retry: { limit: 0 },
    throwHttpErrors: false,
    timeout: { request: options.timeoutMs },
    // Laravel answers errors in JSON only where this type comes first and alone.
    headers: { accept: 'application/json', 'user-agent': options.userAgent },
  })
}

/** Resolves when nothing more of the response is needed, and then destroys the request. */
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
      if (needsNoBody(status)) cut(null)
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
    // Not `once`: an error event without a listener ends the process.
    request.on('error', cut)
    // A request that the caller aborted emits only this.
    request.once('close', cut)
  })
}

/** A longer error body is a debug page, and nothing of that is shown. */
const LONGEST_REFUSAL = 100_000

export function isSuccess(status = 0): boolean {
  return status >= 200 && status <= 299
}

/** The status alone decides what happens next, and the body may never end. */
function needsNoBody(status: number): boolean {
  return status === 401 || status === 429 || (status >= 300 && status <= 399)
}

function largerThan(bytes: number): JobError {
  return new JobError('BAD_RESPONSE', `the answer is larger than api.maxResponseBytes (${bytes} bytes)`)
}

/** zlib's codes for gzip, brotli and zstd that broke off or were damaged. */
const DAMAGED = /^(Z_|ERR__|ZSTD_)/

/** What the commonest network codes mean. */
const HINTS: Readonly<Record<string, string>> = {
  ECONNREFUSED: ', where nothing listens',
  ENOTFOUND: ', a name that is not known',
  EAI_AGAIN: ', a name that could not be looked up',
  EPROTO: ', which speaks no TLS',
}

function translateRequestError(error: unknown, url: URL, timeoutMs: number): KnownError {
  if (!(error instanceof RequestError)) {
    const name = error instanceof Error ? error.name : typeof error
    return new JobError('INTERNAL', `the request failed unexpectedly (${name})`)
  }
  const code = networkCode(error)
  if (error.name === 'TimeoutError') {
    return new RetryableError('TIMEOUT', `no whole answer within api.timeout (${timeoutMs} ms)`)
  }
  if (isCertificateRefused(code))
    return new JobError('NETWORK', `the server's certificate is refused (${code})`)
  if (code === 'HPE_HEADER_OVERFLOW') return new JobError('BAD_RESPONSE', 'the answer has endless headers')
  if (DAMAGED.test(code))
    return new RetryableError('BAD_RESPONSE', `the compressed answer breaks off (${code})`)
  return new RetryableError('NETWORK', `the network failed (${code}) at ${url.origin}${HINTS[code] ?? ''}`)
}

/** While the body is read, got puts the real code into the cause only. */
function networkCode({ code, cause }: RequestError): string {
  if (code !== 'ERR_READING_RESPONSE_STREAM') return code
  return cause instanceof Error && 'code' in cause ? String(cause.code) : code
}

/** Kept connections of one list. */
export interface Connections {
  agent: { http: HttpAgent; https: HttpsAgent }
  close(): void
}

/** After this time an idle connection is closed, or earlier if the server announces it. */
const IDLE_MS = 30_000

/**
 * Opens connections that no other list shares. HTTP/1.1 does not say which request a response belongs to: a
 * proxy that repeats a response on a kept connection would give the rows of one list to the next list that
 * uses it.
 */
export function openConnections(idleMs = IDLE_MS): Connections {
  // The timeout of an agent closes idle connections only: a response may take longer.
  const settings = { keepAlive: true, timeout: idleMs }
  const http = watchIdle(new HttpAgent(settings))
  const https = watchIdle(new HttpsAgent(settings))
  return {
    agent: { http, https },
    close: () => {
      http.destroy()
      https.destroy()
    },
  }
}

/** Closes an idle connection that receives bytes: Node itself does that only since 24.21. */
function watchIdle<A extends HttpAgent>(agent: A): A {
  const { keepSocketAlive, reuseSocket } = agent
  agent.keepSocketAlive = (socket) => {
    socket.once('data', destroy)
    return keepSocketAlive.call(agent, socket)
  }
  agent.reuseSocket = (socket, request) => {
    socket.off('data', destroy)
    reuseSocket.call(agent, socket, request)
  }
  return agent
}

function destroy(this: Duplex): void {
  this.destroy()
}
