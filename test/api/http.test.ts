import { getEventListeners } from 'node:events'
import type { ServerResponse } from 'node:http'
import { createServer } from 'node:net'
import { inspect } from 'node:util'
import { brotliCompressSync, gzipSync, zstdCompressSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { createHttpGet, type HttpOptions } from '../../src/api/http.ts'
import { JobError, KnownError, RetryableError } from '../../src/errors.ts'
import { createSelfSigned } from './helpers/self-signed.ts'
import { serve, serveRaw, serveTls } from './helpers/server.ts'

const SECRET = 'Bearer s3cr3t-token-of-somebody'

/** Long enough for every response that comes. */
const OPTIONS: HttpOptions = {
  timeoutMs: 20_000,
  maxResponseBytes: 1_000_000,
  userAgent: 'admin-mirror/0.0.0',
}
const SHORT = { timeoutMs: 200 }

function ask(url: URL, options: Partial<HttpOptions> = {}, signal = new AbortController().signal) {
  return createHttpGet({ ...OPTIONS, ...options })(url, { authorization: SECRET }, signal)
}

/** The error of a request; checks that it holds nothing of the headers. */
async function errorOf(url: URL, options: Partial<HttpOptions> = {}): Promise<Error> {
  const outcome: unknown = await ask(url, options).catch((error: unknown) => error)
  if (!(outcome instanceof Error)) throw new Error(`it was answered: ${inspect(outcome)}`)
  expect(inspect(outcome, { depth: 20, showHidden: true })).not.toContain('s3cr3t')
  expect(outcome).toBeInstanceOf(KnownError)
  return outcome
}

function textOf(body: Uint8Array): string {
  return new TextDecoder().decode(body)
}

describe('an answer', () => {
  it.each([200, 204, 301, 400, 401, 404, 429, 500, 503])(
    'is returned whatever its status, with its body if that is needed: %i',
    async (status) => {
      const url = await serve((_request, response) =>
        response.writeHead(status, { 'x-some': 'thing', location: '/else' }).end('[1]'),
      )

      const response = await ask(url)

      expect(response.status).toBe(status)
      expect(response.headers['x-some']).toBe('thing')
      expect(textOf(response.body)).toBe([204, 301, 401, 429].includes(status) ? '' : '[1]')
    },
  )

  describe.each([301, 400, 401, 403, 404, 408, 429, 500, 503])('with status %i', (status) => {
    it.each<[string, Record<string, string>, (response: ServerResponse) => void]>([
      ['never ends', {}, (response) => response.write('{"mess')],
      ['breaks off', {}, (response) => response.write('{"mess', () => response.destroy())],
      [
        'is compressed and damaged',
        { 'content-encoding': 'gzip' },
        (response) => response.end('this is no gzip'),
      ],
      ['is endless', {}, endless],
    ])('keeps its status and headers though its body %s', async (_case, headers, answer) => {
      const url = await serve((_request, response) => {
        response.writeHead(status, { ...headers, 'retry-after': '7' })
        answer(response)
      })

      // Waiting for a body that never ends would take this long.
      const response = await ask(url, { timeoutMs: 1000 })

      expect(response).toMatchObject({ status, headers: { 'retry-after': '7' } })
      expect(response.body).toHaveLength(0)
    })
  })

  it.each([300, 301, 399, 401, 429])('with status %i is returned before its body comes', async (status) => {
    const url = await serve((_request, response) => response.writeHead(status).write('{'))

    expect(await ask(url, { timeoutMs: 3_600_000 })).toMatchObject({ status })
  })

  it.each([
    ['gzip', gzipSync],
    ['br', brotliCompressSync],
    ['zstd', zstdCompressSync],
  ])('is returned as bytes, decompressed: %s', async (encoding, compress) => {
    const url = await serve((_request, response) => {
      response.setHeader('content-encoding', encoding)
      response.end(compress(Buffer.from([0x5b, 0xff, 0x5d])))
    })

    expect([...(await ask(url)).body]).toEqual([0x5b, 0xff, 0x5d])
  })

  it('of any success is returned whole, whatever the limit of a refusal is', async () => {
    const url = await serve((_request, response) => response.writeHead(299).end('x'.repeat(200_000)))

    expect((await ask(url)).body).toHaveLength(200_000)
  })

  it('may come in many pieces', async () => {
    const url = await serve((_request, response) => {
      for (let piece = 0; piece < 1000; piece++) response.write('é€')
      response.end()
    })

    expect(textOf((await ask(url)).body)).toBe('é€'.repeat(1000))
  })

  it('may be without a length, and end with the connection', async () => {
    const url = await serveRaw((socket) => socket.end('HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n[1,2]'))

    expect(textOf((await ask(url)).body)).toBe('[1,2]')
  })
})

describe('a request', () => {
  it('is one GET with the given headers and ours', async () => {
    const seen: unknown[] = []
    const url = await serve(({ method, headers, url: path }, response) => {
      const { authorization, accept, cookie } = headers
      seen.push({ method, path, authorization, accept, agent: headers['user-agent'], cookie })
      response.end()
    })

    await ask(url)

    const agent = 'admin-mirror/0.0.0'
    expect(seen).toEqual([
      {
        method: 'GET',
        path: '/list',
        authorization: SECRET,
        accept: 'application/json',
        agent,
        cookie: undefined,
      },
    ])
  })

  it('uses the connection of the last one again', async () => {
    const ports = new Set<number | undefined>()
    const url = await serve(({ socket }, response) => {
      ports.add(socket.remotePort)
      response.end('[]')
    })
    const get = createHttpGet(OPTIONS)

    for (let count = 0; count < 5; count++) await get(url, {}, new AbortController().signal)

    expect(ports.size).toBe(1)
  })

  it('follows no redirect', async () => {
    const paths: (string | undefined)[] = []
    const url = await serve((request, response) => {
      paths.push(request.url)
      response.writeHead(302, { location: '/else' }).end()
    })

    expect((await ask(url)).status).toBe(302)
    expect(paths).toEqual(['/list'])
  })

  it('is sent once if the server fails', async () => {
    let count = 0
    const url = await serve(({ socket }) => {
      count++
      socket.destroy()
    })

    await errorOf(url)

    expect(count).toBe(1)
  })
})

describe('a network fault', () => {
  it.each<[string, () => Promise<URL>]>([
    ['a connection that is reset before the headers', () => serveRaw((socket) => socket.resetAndDestroy())],
    ['a connection that is closed before the headers', () => serveRaw((socket) => socket.end())],
    [
      'a connection that is closed within the headers',
      () => serveRaw((socket) => socket.end('HTTP/1.1 200 OK\r\nContent-')),
    ],
    [
      'a reset in mid-body',
      () =>
        serve((_request, response) =>
          breakOff(response, { 'content-length': 1000 }, (res) => res.socket?.resetAndDestroy()),
        ),
    ],
    [
      'a reset in mid-body without a length',
      () => serve((_request, response) => breakOff(response, {}, (res) => res.socket?.resetAndDestroy())),
    ],
    [
      'a body that is shorter than its length',
      () =>
        serve((_request, response) =>
          breakOff(response, { 'content-length': 1000 }, (res) => res.socket?.end()),
        ),
    ],
    [
      'chunks that break off',
      () => serve((_request, response) => breakOff(response, {}, (res) => res.socket?.end())),
    ],
    ['what is no HTTP', () => serveRaw((socket) => socket.end('SSH-2.0-OpenSSH_9.2\r\n'))],
  ])('is retryable: %s', async (_case, start) => {
    const url = await start()

    const error = await errorOf(url)

    expect(error).toBeInstanceOf(RetryableError)
    expect(error).toMatchObject({ code: 'NETWORK' })
    expect(error.message).toMatch(/^the network failed \([A-Z_]+\) at http:\/\/127\.0\.0\.1:\d+/)
  })

  it('is retryable: a refused connection', async () => {
    const url = await closedPort()

    expect(await errorOf(url)).toMatchObject({
      name: 'RetryableError',
      code: 'NETWORK',
      message: expect.stringMatching(
        /^the network failed \(ECONNREFUSED\) at http:.*, where nothing listens$/,
      ),
    })
  })

  it('is retryable: an unknown host', async () => {
    const error = await errorOf(new URL('http://nobody.invalid/list'))

    expect(error).toMatchObject({ name: 'RetryableError', code: 'NETWORK' })
  })

  it('is not retryable: a certificate that is not trusted', async () => {
    const url = await serveTls(createSelfSigned(), (_request, response) => response.end('[]'))

    const error = await errorOf(url)

    expect(error).toBeInstanceOf(JobError)
    expect(error).toMatchObject({
      code: 'NETWORK',
      message: "the server's certificate is refused (DEPTH_ZERO_SELF_SIGNED_CERT)",
    })
  })

  it('is retryable: a server without TLS that is asked with TLS', async () => {
    const url = await serve((_request, response) => response.end('[]'))
    url.protocol = 'https:'

    expect(await errorOf(url)).toMatchObject({ name: 'RetryableError', code: 'NETWORK' })
  })
})

/** Half a response, and then its end as it comes. */
function breakOff(
  response: ServerResponse,
  headers: Record<string, number>,
  end: (response: ServerResponse) => void,
): void {
  response.writeHead(200, headers)
  response.write('[1,2,', () => setImmediate(end, response))
}

async function closedPort(): Promise<URL> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  await new Promise((resolve) => server.close(resolve))
  return new URL(`http://127.0.0.1:${typeof address === 'object' && address ? address.port : 0}/`)
}

describe('an answer that takes too long', () => {
  it.each<[string, () => Promise<URL>]>([
    ['because nothing comes', () => serve(() => {})],
    [
      'because the headers never end',
      () => serveRaw((socket) => socket.write('HTTP/1.1 200 OK\r\nContent-')),
    ],
    ['because the body never begins', () => serve((_request, response) => response.flushHeaders())],
    ['because the body never ends', () => serve((_request, response) => void response.write('[1,'))],
    ['because the body trickles', () => serve((_request, response) => trickle(response))],
  ])('is a time-out, which is retryable: %s', async (_case, start) => {
    const error = await errorOf(await start(), SHORT)

    expect(error).toBeInstanceOf(RetryableError)
    expect(error).toMatchObject({ code: 'TIMEOUT', message: 'no whole answer within api.timeout (200 ms)' })
  })
})

function trickle(response: ServerResponse): void {
  const timer = setInterval(() => response.write(' '), 10)
  response.on('close', () => clearInterval(timer))
}

function serveEncoded(encoding: string, body: Uint8Array) {
  return serve((_request, response) => {
    response.setHeader('content-encoding', encoding)
    response.end(body)
  })
}

describe('a compressed answer', () => {
  const whole = gzipSync(JSON.stringify(Array.from({ length: 5000 }, (_, index) => index * 7919)))

  it.each<[string, string, Uint8Array]>([
    ['that breaks off', 'gzip', whole.subarray(0, whole.length / 2)],
    ['that breaks off within its last bytes', 'gzip', whole.subarray(0, -3)],
    ['that breaks off within its first bytes', 'gzip', whole.subarray(0, 5)],
    [
      'that is damaged',
      'gzip',
      Buffer.concat([whole.subarray(0, 200), Buffer.alloc(200, 7), whole.subarray(400)]),
    ],
    ['that is none', 'gzip', Buffer.from('[1,2]')],
    ['that is none', 'br', Buffer.from('[1,2]'.repeat(100))],
    ['that breaks off', 'br', brotliCompressSync(whole).subarray(0, -20)],
    ['that is none', 'zstd', Buffer.from('[1,2]')],
    ['that breaks off', 'zstd', zstdCompressSync(whole).subarray(0, -20)],
  ])('%s is retryable: %s', async (_case, encoding, body) => {
    const error = await errorOf(await serveEncoded(encoding, body))

    expect(error).toBeInstanceOf(RetryableError)
    expect(error).toMatchObject({ code: 'BAD_RESPONSE' })
    expect(error.message).toMatch(/^the compressed answer breaks off \([A-Za-z_]\w+\)$/)
  })
})

describe('an answer that is too large', () => {
  const limit = OPTIONS.maxResponseBytes
  const tooLarge = {
    code: 'BAD_RESPONSE',
    message: 'the answer is larger than api.maxResponseBytes (1000000 bytes)',
  }

  it.each<[string, (response: ServerResponse) => void]>([
    [
      'with a length',
      (response) => response.setHeader('content-length', limit + 1).end(Buffer.alloc(limit + 1)),
    ],
    ['in chunks', (response) => response.end(Buffer.alloc(limit + 1))],
    [
      'in one more byte at the end',
      (response) => void response.write(Buffer.alloc(limit), () => response.end('x')),
    ],
    ['without an end', endless],
    [
      'compressed',
      (response) => response.setHeader('content-encoding', 'gzip').end(gzipSync(Buffer.alloc(limit + 1))),
    ],
    [
      'compressed with a length',
      (response) => {
        const body = gzipSync(Buffer.alloc(limit + 1))
        response.setHeader('content-encoding', 'gzip').setHeader('content-length', body.length).end(body)
      },
    ],
  ])('is not retried: %s', async (_case, answer) => {
    const url = await serve((_request, response) => answer(response))

    const error = await errorOf(url)

    expect(error).toBeInstanceOf(JobError)
    expect(error).toMatchObject(tooLarge)
  })

  it.each<[string, (response: ServerResponse) => void]>([
    ['with a length', (response) => response.setHeader('content-length', limit).end(Buffer.alloc(limit))],
    ['in chunks', (response) => response.end(Buffer.alloc(limit))],
    [
      'compressed',
      (response) => response.setHeader('content-encoding', 'gzip').end(gzipSync(Buffer.alloc(limit))),
    ],
  ])('is one byte larger than the largest that is returned: %s', async (_case, answer) => {
    const url = await serve((_request, response) => answer(response))

    expect((await ask(url)).body).toHaveLength(limit)
  })

  it('takes no memory for what a small answer unpacks to', async () => {
    const megabyte = gzipSync(Buffer.alloc(1_000_000))
    const bomb = Buffer.concat(Array.from({ length: 400 }, () => megabyte))
    const url = await serve((_request, response) => response.setHeader('content-encoding', 'gzip').end(bomb))
    const before = process.resourceUsage().maxRSS

    const error = await errorOf(url)

    const kilobytes = process.resourceUsage().maxRSS - before
    expect(error).toMatchObject(tooLarge)
    expect(bomb.length).toBeLessThan(500_000)
    expect(kilobytes).toBeLessThan(100_000)
  })
})

function endless(response: ServerResponse): void {
  const more = () => {
    if (!response.destroyed) response.write(Buffer.alloc(64_000), more)
  }
  more()
}

describe('headers', () => {
  it('without an end are not retried', async () => {
    const url = await serveRaw((socket) => {
      socket.write('HTTP/1.1 200 OK\r\n')
      const more = () => void (socket.destroyed || socket.write(`x-more: ${'x'.repeat(1000)}\r\n`, more))
      more()
    })

    const error = await errorOf(url)

    expect(error).toBeInstanceOf(JobError)
    expect(error).toMatchObject({ code: 'BAD_RESPONSE', message: 'the answer has endless headers' })
  })
})

describe('an abort', () => {
  it.each<[string, (response: ServerResponse) => void]>([
    ['before the headers', () => {}],
    ['in mid-body', (response) => void response.write('[1,')],
  ])('ends a request at once, with its own reason: %s', async (_case, answer) => {
    const stop = new AbortController()
    const closed = Promise.withResolvers<void>()
    const url = await serve((request, response) => {
      answer(response)
      request.socket.on('close', () => closed.resolve())
      setImmediate(() => stop.abort(new Error('stopped')))
    })

    await expect(ask(url, {}, stop.signal)).rejects.toThrow(new Error('stopped'))
    await closed.promise
  })

  it('is listened for only while the request runs', async () => {
    const url = await serve((_request, response) => response.end('[]'))
    const { signal } = new AbortController()

    await ask(url, {}, signal)

    expect(getEventListeners(signal, 'abort')).toEqual([])
  })

  it('before the request sends nothing', async () => {
    let asked = false
    const url = await serve((_request, response) => {
      asked = true
      response.end()
    })

    await expect(ask(url, {}, AbortSignal.abort(new Error('stopped')))).rejects.toThrow(new Error('stopped'))
    expect(asked).toBe(false)
  })

  it('after the answer changes nothing', async () => {
    const stop = new AbortController()
    const url = await serve((_request, response) => response.end('[1]'))

    const response = await ask(url, {}, stop.signal)
    stop.abort()

    expect(textOf(response.body)).toBe('[1]')
  })
})
