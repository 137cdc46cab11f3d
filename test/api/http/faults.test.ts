import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { brotliCompressSync, deflateRawSync, gzipSync, zstdCompressSync } from 'node:zlib'
import { RequestError } from 'got'
import { describe, expect, it } from 'vitest'
import { causeOf } from '../../../src/api/causes.ts'
import { JobError, RetryableError } from '../../../src/errors.ts'
import { ask, endless, errorOf, OPTIONS, SHORT } from '../helpers/http.ts'
import { createSelfSigned, serve, serveRaw, serveTls } from '../helpers/server.ts'

describe('a network fault', () => {
  it.each<[string, () => Promise<URL>]>([
    ['a connection that is reset before the headers', () => serveRaw((socket) => socket.resetAndDestroy())],
    [
      'a reset in mid-body',
      () =>
        serve((_request, response) =>
          breakOff(response, { 'content-length': 1000 }, (res) => res.socket?.resetAndDestroy()),
        ),
    ],
    [
      'a body that is shorter than its length',
      () =>
        serve((_request, response) =>
          breakOff(response, { 'content-length': 1000 }, (res) => res.socket?.end()),
        ),
    ],
    [
      'half of the chunks',
      () => serve((_request, response) => breakOff(response, {}, (res) => res.socket?.end())),
    ],
    ['headers that break off', () => serveRaw((socket) => socket.end('HTTP/1.1 200 OK\r\nContent-Le'))],
  ])('is retryable: %s', async (_case, start) => {
    const url = await start()

    const error = await errorOf(url)

    expect(error).toBeInstanceOf(RetryableError)
    expect(error).toMatchObject({ code: 'NETWORK' })
    expect(error.message).toMatch(/^the network failed \([A-Z_]+\) at http:\/\/127\.0\.0\.1:\d+/)
  })
})

/** An alert of TLS, by its number. */
const alert = (number: number) => () =>
  serveRaw((socket) => socket.end(Buffer.from([0x15, 3, 3, 0, 2, 2, number])))

describe('a TLS handshake', () => {
  it.each<[string, () => Promise<URL>, string, RegExp]>([
    [
      'no TLS there',
      () => serve((_request, response) => response.end('[]')),
      'wrong version number',
      /no TLS; look at http/,
    ],
    [
      'no HTTP either',
      () => serveRaw((socket) => socket.end('220 mail ESMTP\r\n')),
      'wrong version number',
      /no TLS; look at http/,
    ],
    ['no common cipher', alert(40), 'ssl/tls alert handshake failure', /no version or cipher/],
    ['no common version', alert(70), 'tlsv1 alert protocol version', /no version or cipher/],
    [
      'another name',
      alert(112),
      'tlsv1 unrecognized name',
      /no certificate for this name; look at api.baseUrl/,
    ],
    [
      'a certificate of ours',
      alert(116),
      'tlsv13 alert certificate required',
      /asks for a certificate of this client/,
    ],
  ])('that fails in the same way each time is not retryable: %s', async (_case, start, reason, says) => {
    const error = await errorOf(secured(await start()))

    expect(error).toBeInstanceOf(JobError)
    expect(error).toMatchObject({ code: 'NETWORK', message: expect.stringContaining(`: ${reason} at`) })
    expect(error.message).toMatch(says)
  })

  it('that fails for a reason of the server is retryable, and so is one that breaks off', async () => {
    const internal = secured(await alert(80)())
    const closed = secured(await serveRaw((socket) => socket.destroy()))

    const errors = [await errorOf(internal), await errorOf(closed)]

    expect(errors.every((error) => error instanceof RetryableError)).toBe(true)
    expect(errors.map(({ message }) => message)).toEqual([
      `the network failed (EPROTO: tlsv1 alert internal error) at ${internal.origin}`,
      `the network failed (ECONNRESET) at ${closed.origin}, which closed the connection`,
    ])
  })

  it('with a certificate that nobody vouches for is not retryable', async () => {
    const error = await errorOf(
      await serveTls(createSelfSigned(), (_request, response) => response.end('[]')),
    )

    expect(error).toBeInstanceOf(JobError)
    expect(error).toMatchObject({ code: 'NETWORK' })
    expect(error.message).toMatch(
      /signed by nobody .* NODE_EXTRA_CA_CERTS .* \(DEPTH_ZERO_SELF_SIGNED_CERT at/,
    )
  })
})

describe('a code of the network', () => {
  it.each([
    ['ECONNRESET', ', which closed the connection'],
    ['EIO', ''],
    ['ECONNREFUSED', ', where nothing listens'],
    ['ENOTFOUND', ', a name that is not known'],
    ['EAI_AGAIN', ', a name that could not be looked up'],
    ['EHOSTUNREACH', ', which no route leads to'],
    ['EACCES', ', which this machine may not connect to (a firewall?)'],
  ])('is retryable: %s', (code, hint) => {
    const error = causeOf(failure(code), new URL('https://admin.example.com/list'), 1000)

    expect(error).toBeInstanceOf(RetryableError)
    expect(error.code).toBe('NETWORK')
    expect(error.message).toBe(`the network failed (${code}) at https://admin.example.com${hint}`)
  })

  it.each([
    ['CERT_HAS_EXPIRED', "has expired or is not valid yet, or this machine's clock is wrong"],
    ['CERT_NOT_YET_VALID', "has expired or is not valid yet, or this machine's clock is wrong"],
    ['ERR_TLS_CERT_ALTNAME_INVALID', 'is for another host; look at api.baseUrl'],
    ['HOSTNAME_MISMATCH', 'is for another host; look at api.baseUrl'],
    ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'is signed by nobody'],
    ['SELF_SIGNED_CERT_IN_CHAIN', 'is signed by nobody'],
    ['INVALID_CA', 'is refused'],
    ['CRL_HAS_EXPIRED', 'is refused'],
  ])('that refuses a certificate is not retryable: %s', (code, says) => {
    const error = causeOf(failure(code), new URL('https://admin.example.com/list'), 1000)

    expect(error).toBeInstanceOf(JobError)
    expect(error.message).toContain(`the server's certificate ${says}`)
    expect(error.message).toContain(`(${code} at https://admin.example.com)`)
  })
})

/** As got has it; its options, which hold the request's headers, are left out. */
function failure(code: string): RequestError {
  return Object.assign(Object.create(RequestError.prototype), {
    code,
    message: 'failed',
    name: 'RequestError',
  })
}

function secured(url: URL): URL {
  return new URL(url.href.replace(/^http:/, 'https:'))
}

const OK = 'HTTP/1.1 200 OK\r\n'

describe('what is no HTTP', () => {
  it.each([
    ['SSH', 'SSH-2.0-OpenSSH_9.2\r\n', 'HPE_INVALID_CONSTANT'],
    ['TLS', Buffer.from([0x15, 3, 1, 0, 2, 2, 70]), 'HPE_INVALID_CONSTANT'],
    ['a page without headers', '<html>hello</html>', 'HPE_INVALID_CONSTANT'],
    ['two lengths', `${OK}Content-Length: 2\r\nContent-Length: 3\r\n\r\n[]`, 'HPE_UNEXPECTED_CONTENT_LENGTH'],
    ['folded headers', `${OK}X-A: a\r\n b: c\r\nContent-Length: 2\r\n\r\n[]`, 'HPE_INVALID_HEADER_TOKEN'],
    [
      'a length and chunks',
      `${OK}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n`,
      'HPE_INVALID_TRANSFER_ENCODING',
    ],
    ['a status that is no number', 'HTTP/1.1 abc OK\r\n\r\n', 'HPE_INVALID_STATUS'],
    [
      'chunks without a length',
      `${OK}Transfer-Encoding: chunked\r\n\r\nzz\r\n[]\r\n`,
      'HPE_INVALID_CHUNK_SIZE',
    ],
  ])('is not retryable: %s', async (_case, bytes, code) => {
    const url = await serveRaw((socket) => socket.end(bytes))

    const error = await errorOf(url)

    expect(error).toBeInstanceOf(JobError)
    const is = /CONSTANT|VERSION/.test(code) ? 'not HTTP' : 'HTTP that breaks its rules'
    expect(error).toMatchObject({ code: 'BAD_RESPONSE' })
    expect(error.message).toMatch(`the answer is ${is}`)
    expect(error.message).toMatch(`(${code} at ${url.origin})`)
  })

  it('is not retryable: headers beyond 16 kB', async () => {
    const error = await errorOf(
      await serveRaw((socket) => socket.end(`${OK}X-More: ${'x'.repeat(20_000)}\r\n\r\n`)),
    )

    expect(error).toBeInstanceOf(JobError)
    expect(error.message).toContain('more than 16 kB of headers')
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

describe('an answer that takes too long', () => {
  it.each<[string, () => Promise<URL>]>([
    ['because nothing comes', () => serve(() => {})],
    ['because interim answers come for ever', () => serveRaw(trickleInterimAnswers)],
    ['because the body trickles', () => serve((_request, response) => trickle(response))],
  ])('is a time-out, which is retryable: %s', async (_case, start) => {
    const error = await errorOf(await start(), SHORT)

    expect(error).toBeInstanceOf(RetryableError)
    expect(error).toMatchObject({ code: 'TIMEOUT', message: 'no whole answer within api.timeout (200 ms)' })
  })
})

it('a switch to another protocol is no answer, and not retryable', async () => {
  const switching = 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\n'
  const error = await errorOf(await serveRaw((socket) => socket.write(switching)))

  expect(error).toBeInstanceOf(JobError)
  expect(error).toMatchObject({
    code: 'UNEXPECTED_STATUS',
    message: expect.stringMatching(/^the server answered 101;/),
  })
})

function trickleInterimAnswers(socket: Socket): void {
  const timer = setInterval(() => socket.write('HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n'), 10)
  socket.on('close', () => clearInterval(timer))
}

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
    ['gzip', 'Z_BUF_ERROR', whole.subarray(0, whole.length / 2)],
    [
      'gzip',
      'Z_DATA_ERROR',
      Buffer.concat([whole.subarray(0, 200), Buffer.alloc(200, 7), whole.subarray(400)]),
    ],
    ['br', 'Z_BUF_ERROR', brotliCompressSync(whole).subarray(0, -20)],
    ['zstd', 'Z_BUF_ERROR', zstdCompressSync(whole).subarray(0, -20)],
  ])('that is not whole is retryable: %s %s', async (encoding, code, body) => {
    const error = await errorOf(await serveEncoded(encoding, body))

    expect(error).toBeInstanceOf(RetryableError)
    expect(error).toMatchObject({ code: 'BAD_RESPONSE' })
    expect(error.message).toMatch(
      `breaks off or is damaged; if it stays so, look at the server, or at a proxy before it (${code}`,
    )
  })

  it.each(['gzip', 'zstd'])('that is none is not retryable: %s', async (encoding) => {
    const error = await errorOf(await serveEncoded(encoding, Buffer.from('{"data":[]}')))

    expect(error).toBeInstanceOf(JobError)
    expect(error.message).toContain('the answer is not compressed as its Content-Encoding says')
  })

  it.each([
    ['deflate', deflateRawSync('[]')],
    ['gzip, br', Buffer.from('[]')],
    ['compress', Buffer.from('[]')],
  ])('that was not asked for is not retryable: %s', async (encoding, body) => {
    const error = await errorOf(await serveEncoded(encoding, body))

    expect(error).toEqual(
      new JobError(
        'BAD_RESPONSE',
        `the answer is encoded as ${encoding}, which was not asked for; look at the server, or at a proxy before it`,
      ),
    )
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
    ['without an end', endless],
    [
      'compressed',
      (response) => response.setHeader('content-encoding', 'gzip').end(gzipSync(Buffer.alloc(limit + 1))),
    ],
  ])('is not retried: %s', async (_case, answer) => {
    const url = await serve((_request, response) => answer(response))

    const error = await errorOf(url)

    expect(error).toBeInstanceOf(JobError)
    expect(error).toMatchObject(tooLarge)
  })

  it.each<[string, (response: ServerResponse) => void]>([
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
