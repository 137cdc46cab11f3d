import { getEventListeners } from 'node:events'
import type { ServerResponse } from 'node:http'
import { createServer, type Socket } from 'node:net'
import { constants } from 'node:os'
import { inspect } from 'node:util'
import { brotliCompressSync, gzipSync, zstdCompressSync } from 'node:zlib'
import { RequestError } from 'got'
import { describe, expect, it } from 'vitest'
import { createHttpGet, type HttpOptions } from '../../src/api/http.ts'
import { errorOfRequest } from '../../src/api/network-errors.ts'
import { JobError, type KnownError } from '../../src/errors.ts'
import { createSelfSigned } from '../helpers/certificate.ts'
import { serve } from '../helpers/list-server.ts'
import { listen } from '../helpers/loopback.ts'

// What a server does to a connection, over real sockets.

const LIMIT = 1_000_000
const OPTIONS: HttpOptions = { timeout: 20_000, maxResponseBytes: LIMIT, userAgent: 'admin-mirror/0.0.0' }
const HEADERS = { authorization: 'Bearer s3cr3t-token-of-somebody' }

function ask(url: URL, timeout = OPTIONS.timeout, signal = new AbortController().signal) {
  return createHttpGet({ ...OPTIONS, timeout })(url, HEADERS, signal)
}

/** The error of a request; checks that it holds nothing of the headers. */
async function errorOf(url: URL, timeout?: number): Promise<unknown> {
  const outcome: unknown = await ask(url, timeout).catch((error: unknown) => error)
  expect(inspect(outcome, { depth: 20, showHidden: true })).not.toContain('s3cr3t')
  return outcome
}

type Answer = (response: ServerResponse) => unknown
const serving = (answer: Answer, tls?: { key: string; cert: string }) => async () =>
  new URL('/list', (await serve(() => ({ fault: answer }), tls)).url)

/** A server that answers each request with raw bytes, for what no HTTP server would send. */
async function serveRaw(answer: (socket: Socket) => void): Promise<URL> {
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', () => answer(socket))
  })
  return new URL(`http://127.0.0.1:${await listen(server)}/list`)
}

const serveBytes = (bytes: string | Uint8Array) => () => serveRaw((socket) => socket.end(bytes))
const encoded = (encoding: string, body: Uint8Array) =>
  serving((response) => response.setHeader('content-encoding', encoding).end(body))
const secured = (url: URL) => new URL(url.href.replace(/^http:/, 'https:'))

/** Half a response, and then its end as it comes. */
const breakingOff = (end: (socket: Socket | null) => void) =>
  serving((response) =>
    response.setHeader('content-length', 1000).write('[1,2,', () => setImmediate(() => end(response.socket))),
  )

function endless(response: ServerResponse): void {
  const more = () => {
    if (!response.destroyed) response.write(Buffer.alloc(64_000), more)
  }
  more()
}

function trickle(response: ServerResponse): void {
  const timer = setInterval(() => response.write(' '), 10)
  response.on('close', () => clearInterval(timer))
}

/** An alert of TLS, by its number. */
const alert = (number: number) => async () =>
  secured(await serveBytes(Buffer.from([0x15, 3, 3, 0, 2, 2, number]))())

const HTTP = 'HTTP/1.1 200 OK\r\n'
const TWO_LENGTHS = 'Content-Length: 2\r\nContent-Length: 3'
const whole = gzipSync(JSON.stringify(Array.from({ length: 5000 }, (_, index) => index * 7919)))
const NO_JSON = Buffer.from('{"data":[]}')

const JOB = 'JobError'
const AGAIN = 'RetryableError'
const LATE = /^TIMEOUT no whole answer within api.timeout \(200 ms\)$/
const NOT_COMPRESSED = /^BAD_RESPONSE .*not compressed as its Content-Encoding/
const CERTIFICATE = "the server's certificate is refused"
const LARGER = /^BAD_RESPONSE the answer is larger than api.maxResponseBytes \(1000000 bytes\)/

describe('a request without a whole answer', () => {
  it.each<[what: string, start: () => Promise<URL>, typeof JOB | typeof AGAIN, RegExp]>([
    [
      'a reset',
      () => serveRaw((one) => one.resetAndDestroy()),
      AGAIN,
      /^NETWORK .*connection reset by peer\) at http:/,
    ],
    ['a reset in mid-body', breakingOff((one) => one?.resetAndDestroy()), AGAIN, /^NETWORK/],
    ['a body that is shorter than its length', breakingOff((one) => one?.end()), AGAIN, /^NETWORK/],
    ['half of a gzip', encoded('gzip', whole.subarray(0, 9000)), AGAIN, / breaks off.*\(Z_BUF/],
    ['half of a brotli', encoded('br', brotliCompressSync(whole).subarray(0, -20)), AGAIN, /^BAD_RESPONSE/],
    ['half of a zstd', encoded('zstd', zstdCompressSync(whole).subarray(0, -20)), AGAIN, /^BAD_RESPONSE/],
    ['a body that trickles', serving(trickle), AGAIN, LATE],
    [
      'no TLS there',
      async () => secured(await serveBytes(`${HTTP}\r\n`)()),
      AGAIN,
      /: wrong version number at/,
    ],
    ['a certificate of nobody', serving(() => {}, createSelfSigned()), JOB, /^NETWORK.* NODE_EXTRA_CA/],
    [
      'no common version',
      alert(70),
      AGAIN,
      /EPROTO: tlsv1 alert protocol version at .*look at http or https/,
    ],
    ['SSH', serveBytes('SSH-2.0-OpenSSH_9.2\r\n'), JOB, / not HTTP.*\(HPE_INVALID_CONSTANT/],
    ['two lengths', serveBytes(`${HTTP}${TWO_LENGTHS}\r\n\r\n[]`), JOB, /^BAD_RESPONSE.*breaks its rules/],
    ['gzip that is none', encoded('gzip', NO_JSON), JOB, NOT_COMPRESSED],
    ['zstd that is none', encoded('zstd', NO_JSON), JOB, NOT_COMPRESSED],
    ['a body without an end', serving(endless), JOB, LARGER],
    ['a body that unpacks to too much', encoded('gzip', gzipSync(Buffer.alloc(LIMIT + 1))), JOB, LARGER],
  ])('is tried again where that may help, and says what came: %s', async (_what, start, name, says) => {
    const error = (await errorOf(await start(), says === LATE ? 200 : undefined)) as KnownError

    expect(error.name).toBe(name)
    expect(`${error.code} ${error.message}`).toMatch(says)
  })

  it.each<[code: string, name: string, says: string, message?: string]>([
    [
      'ECONNREFUSED',
      'RetryableError',
      'the network failed (ECONNREFUSED: connection refused) at https://x.example; look at the server,',
    ],
    ['EIO', 'RetryableError', 'the network failed (EIO'],
    ['CERT_HAS_EXPIRED', 'JobError', CERTIFICATE],
    ['ERR_TLS_CERT_ALTNAME_INVALID', 'JobError', CERTIFICATE],
    ['HOSTNAME_MISMATCH', 'JobError', CERTIFICATE],
    ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'JobError', CERTIFICATE],
    ['INVALID_CA', 'JobError', CERTIFICATE],
    ['CRL_HAS_EXPIRED', 'JobError', CERTIFICATE],
    // As OpenSSL tells that the server asks for a certificate of ours.
    [
      'ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED',
      'RetryableError',
      'no TLS with the server (ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED: tlsv13 alert certificate required at',
      '80FB:error:0A00045C:SSL routines:ssl3_read_bytes:tlsv13 alert certificate required:rec.c:916:s3cr3t',
    ],
  ])('with the code %s is a %s in words', (code, name, says, message = 's3cr3t') => {
    const errno = constants.errno[code as 'EIO']
    const cause = Object.assign(new Error(message), { code, ...(errno && { errno: -errno }) })
    // As got has it; its options, which hold the request's headers, are left out.
    const fields = { code: 'ERR_OTHER', message, cause }
    const failure = Object.assign(Object.create(RequestError.prototype), fields)

    const error = errorOfRequest(failure, new URL('https://x.example/list'), 1000)

    expect(error).toMatchObject({ name, code: 'NETWORK', message: expect.stringContaining(says) })
    expect(error.message).toContain(`(${code}`)
    expect(error.message).not.toContain('s3cr3t')
  })
})

describe('an answer', () => {
  it('with 101, for which Node has an event of its own, is returned at once, and its connection closed', async () => {
    const closed = Promise.withResolvers<void>()
    const url = await serveRaw((socket) => {
      socket.on('close', () => closed.resolve())
      socket.write('HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\n')
    })

    expect(await ask(url)).toMatchObject({ status: 101, headers: { upgrade: 'other' }, body: { length: 0 } })
    await closed.promise
  })

  it.each([200, 204, 301, 401, 404, 429, 500])(
    'is returned whatever its status, with its body if that is needed: %i',
    async (status) => {
      const url = await serving((response) =>
        response.writeHead(status, { 'x-some': 'thing', location: '/else' }).end('[1]'),
      )()

      const { body, headers, ...rest } = await ask(url)

      expect({ ...rest, some: headers['x-some'] }).toEqual({ status, some: 'thing' })
      expect(Buffer.from(body).toString()).toBe([204, 301, 429].includes(status) ? '' : '[1]')
    },
  )

  it.each<[string, Answer]>([
    ['never ends', (response) => response.write('{"mess')],
    ['breaks off', (response) => response.write('{"mess', () => response.destroy())],
    ['is endless', endless],
  ])('with 401 keeps its status and headers though its body %s', async (_case, answer) => {
    const url = await serving((response) => answer(response.writeHead(401, { 'retry-after': '7' })))()

    expect(await ask(url)).toMatchObject({
      status: 401,
      headers: { 'retry-after': '7' },
      body: { length: 0 },
    })
  })

  it('is returned decompressed, up to the limit', async () => {
    const { body } = await ask(await encoded('zstd', zstdCompressSync(Buffer.alloc(LIMIT, 0xff)))())

    expect([body.length, body[0]]).toEqual([LIMIT, 0xff])
  })

  it('takes no memory for what a small answer unpacks to', async () => {
    const megabyte = gzipSync(Buffer.alloc(1_000_000))
    const url = await encoded('gzip', Buffer.concat(Array.from({ length: 400 }, () => megabyte)))()
    const before = process.resourceUsage().maxRSS

    expect(await errorOf(url)).toBeInstanceOf(JobError)
    expect(process.resourceUsage().maxRSS - before).toBeLessThan(100_000)
  })
})

describe('an abort', () => {
  it('ends a request at once, with its own reason', async () => {
    const stop = new AbortController()
    const closed = Promise.withResolvers<void>()
    const url = await serving((response) => {
      response.socket?.on('close', () => closed.resolve())
      response.write('[1,', () => stop.abort(new Error('stopped')))
    })()

    await expect(ask(url, 600_000, stop.signal)).rejects.toThrow(new Error('stopped'))
    await closed.promise
  })

  it('before the request sends nothing, and is listened for only while it runs', async () => {
    const url = await serving((response) => response.end('[]'))()
    const { signal } = new AbortController()
    await ask(url, 20_000, signal)

    expect(getEventListeners(signal, 'abort')).toEqual([])
    await expect(
      ask(new URL('http://127.0.0.1:1'), 20_000, AbortSignal.abort(new Error('stopped'))),
    ).rejects.toThrow('stopped')
  })
})

it('a connection is kept for the next request', async () => {
  const sockets = new Set<Socket | null>()
  const url = await serving((response) => {
    sockets.add(response.socket)
    response.end('[]')
  })()
  const get = createHttpGet(OPTIONS)
  for (let request = 0; request < 4; request++) await get(url, {}, new AbortController().signal)

  expect(sockets.size).toBe(1)
})
