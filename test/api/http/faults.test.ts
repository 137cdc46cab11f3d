import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { brotliCompressSync, gzipSync, zstdCompressSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
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
    ['what is no HTTP', () => serveRaw((socket) => socket.end('SSH-2.0-OpenSSH_9.2\r\n'))],
  ])('is retryable: %s', async (_case, start) => {
    const url = await start()

    const error = await errorOf(url)

    expect(error).toBeInstanceOf(RetryableError)
    expect(error).toMatchObject({ code: 'NETWORK' })
    expect(error.message).toMatch(/^the network failed \([A-Z_]+\) at http:\/\/127\.0\.0\.1:\d+/)
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
    ['because it switches protocols', () => serveRaw((socket) => socket.write(SWITCHING))],
    ['because the body trickles', () => serve((_request, response) => trickle(response))],
  ])('is a time-out, which is retryable: %s', async (_case, start) => {
    const error = await errorOf(await start(), SHORT)

    expect(error).toBeInstanceOf(RetryableError)
    expect(error).toMatchObject({ code: 'TIMEOUT', message: 'no whole answer within api.timeout (200 ms)' })
  })
})

const SWITCHING = 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\n'

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
    ['that breaks off', 'gzip', whole.subarray(0, whole.length / 2)],
    ['damaged', 'gzip', Buffer.concat([whole.subarray(0, 200), Buffer.alloc(200, 7), whole.subarray(400)])],
    ['that breaks off', 'br', brotliCompressSync(whole).subarray(0, -20)],
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
