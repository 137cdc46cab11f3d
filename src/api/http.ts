import { once } from 'node:events'
import { Agent as HttpAgent } from 'node:http'
import { Agent as HttpsAgent } from 'node:https'
import type { Socket } from 'node:net'
import { addAbortSignal } from 'node:stream'
import got, { type PlainResponse, type Request, RequestError } from 'got'
import { JobError } from '../errors.ts'
import { errorOfRequest } from './network-errors.ts'
import type { Headers } from './rate/headers.ts'

export interface HttpOptions {
  /** For connecting, sending, and receiving the last byte of the body. Milliseconds. */
  timeout: number
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
 * Sends one GET and returns its response, whatever the status. Only a 2xx response always has its whole body.
 * Throws RetryableError or JobError, whose message does not name the page.
 */
export type HttpGet = (
  url: URL,
  headers: Record<string, string>,
  signal: AbortSignal,
  /** Called with the status before the body is read. */
  onStatus?: (status: number) => void,
) => Promise<Response>

/** An idle connection is closed after this time: a router on the way may have forgotten it. */
const IDLE_MS = 30_000

export function createHttpGet({ timeout, maxResponseBytes, userAgent }: HttpOptions): HttpGet {
  const settings = { keepAlive: true, timeout: IDLE_MS }
  const client = got.extend({
    // Those of Node itself may lead through a proxy that the environment names.
    agent: { http: new HttpAgent(settings), https: new HttpsAgent(settings) },
    // A redirect would take the organization header to another address, and turn a good token into a 401.
    followRedirect: false,
    // Two layers of retries multiply: only retry.ts retries.
    retry: { limit: 0 },
    throwHttpErrors: false,
    timeout: { request: timeout },
    headers: {
      // Laravel answers errors in JSON only where this type comes first and alone.
      accept: 'application/json',
      // Servers send two kinds of deflate, and only one of them can be read.
      'accept-encoding': 'gzip, br, zstd',
      'user-agent': userAgent,
    },
  })
  return async (url, headers, signal, onStatus) => {
    signal.throwIfAborted()
    // The promise that got returns takes 0.1 ms more per request, and resolves only after the whole body.
    const request = client.stream(url, { headers, signal })
    // An error that comes when nobody waits for the request any more would end the process.
    request.on('error', () => {})
    try {
      // Node tells of a 101 by an event of its own, and leaves the socket to us.
      const answers = ['response', 'upgrade'].map((event) => once(request, event))
      const [response, socket] = (await Promise.race(answers)) as [PlainResponse, Socket?]
      socket?.destroy()
      const { statusCode: status, headers: received } = response
      onStatus?.(status)
      if (!isSuccess(status)) return { status, headers: received, body: await readRefusal(request, status) }
      return { status, headers: received, body: await readBody(request, maxResponseBytes) }
    } catch (error) {
      signal.throwIfAborted()
      // got's own errors hold the headers of the request, and so the token: they are never passed on, not even as a cause.
      if (!(error instanceof RequestError)) throw error
      throw errorOfRequest(error, url, timeout)
    } finally {
      request.destroy()
    }
  }
}

/** 206 is a part of a list, which nobody asked for. */
export function isSuccess(status: number): boolean {
  return status >= 200 && status <= 299 && status !== 206
}

async function readBody(request: Request, most: number): Promise<Uint8Array> {
  const pieces: Uint8Array[] = []
  let bytes = 0
  for await (const piece of request) {
    bytes += piece.length
    if (bytes > most)
      throw new JobError('BAD_RESPONSE', `the answer is larger than api.maxResponseBytes (${most} bytes)`)
    pieces.push(piece)
  }
  return Buffer.concat(pieces)
}

/** A longer body is a debug page, and nothing of that is shown. */
const LONGEST_REFUSAL = 100_000

const REFUSAL_WITHIN_MS = 1000

/** What soon comes of a body that only says why: the status alone decides what happens next, and the body may never end. */
async function readRefusal(request: Request, status: number): Promise<Uint8Array> {
  if (status === 429 || status < 200 || (status >= 300 && status <= 399)) return new Uint8Array()
  addAbortSignal(AbortSignal.timeout(REFUSAL_WITHIN_MS), request)
  return readBody(request, LONGEST_REFUSAL).catch(() => new Uint8Array())
}
