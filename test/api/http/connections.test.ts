import { once } from 'node:events'
import type { Socket } from 'node:net'
import { gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { createHttpGet, type HttpGet } from '../../../src/api/http.ts'
import { createSetting, readArrived } from '../helpers/api.ts'
import { pageText } from '../helpers/job.ts'
import { serve, serveRaw } from '../helpers/server.ts'

const OPTIONS = { timeoutMs: 20_000, maxResponseBytes: 1_000_000, userAgent: 'admin-mirror/0.0.0' }

async function read(get: HttpGet, url: URL): Promise<string> {
  await readArrived()
  const response = await get(url, {}, new AbortController().signal)
  return new TextDecoder().decode(response.body)
}

/** A server that answers the first request with `first`, the second with `second`, and so on, over any connection. */
function serveInTurn(reply: (socket: Socket, body: string) => void): Promise<URL> {
  const bodies = ['first', 'second', 'third']
  return serveRaw((socket) => {
    const answer = () => reply(socket, bodies.shift() ?? '')
    socket.on('data', answer)
    answer()
  })
}

function answerWith(body: string): string {
  return `HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n${body}`
}

/** Serves a list of three pages; `sockets` has one entry a request. */
async function servePages(): Promise<{ url: URL; sockets: Socket[] }> {
  const sockets: Socket[] = []
  const url = await serveRaw((socket) => {
    const answer = () => {
      sockets.push(socket)
      socket.write(answerWith(pageText(sockets.length, 3)))
    }
    socket.on('data', answer)
    answer()
  })
  return { url, sockets }
}

/** When a copy of the first answer comes. The test continues when the returned promise resolves. */
const COPIES: [string, (socket: Socket, answer: string) => void, () => Promise<unknown>][] = [
  ['together with it', (socket, answer) => socket.write(answer + answer), async () => {}],
  ['right behind it', writeBehind, async () => {}],
  ['while the connection is idle', writeBehind, () => new Promise((resolve) => setTimeout(resolve, 50))],
  [
    'in part together with it',
    (socket, answer) => {
      socket.write((answer + answer).slice(0, -20))
      setImmediate(() => socket.write(answer.slice(-20)))
    },
    async () => {},
  ],
]

function writeBehind(socket: Socket, answer: string): void {
  socket.write(answer)
  setImmediate(() => socket.write(answer))
}

describe('an answer that comes twice', () => {
  it.each(COPIES)('is not taken for a response: %s', async (_when, write, wait) => {
    const url = await serveInTurn((socket, body) => write(socket, answerWith(body)))
    const get = createHttpGet(OPTIONS)

    for (const body of ['first', 'second', 'third']) {
      expect(await read(get, url)).toBe(body)
      await wait()
    }
  })

  it('is dropped if it arrived before the next request and was not read yet', async () => {
    const { url, sockets } = await servePages()
    const { fetchPage } = createSetting({ options: { baseUrl: url.origin } })
    await fetchPage(1)

    sockets[0]?.write(answerWith(pageText(1, 3)))

    expect(await fetchPage(2)).toMatchObject({ number: 2 })
    expect(new Set(sockets).size).toBe(2)
  })

  it('closes its connection while the first one is still being unpacked, too', async () => {
    let closed: Promise<unknown> = Promise.resolve()
    const packed = gzipSync(Buffer.alloc(900_000, 'x'))
    const url = await serveRaw((socket) => {
      closed = once(socket, 'close')
      socket.write(`HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: ${packed.length}\r\n\r\n`)
      // Two turns later the client has read all of the answer. No more of the copy follows.
      socket.write(packed, () => setImmediate(() => setImmediate(() => socket.write('HTTP/1.1 200 '))))
    })

    expect(await read(createHttpGet(OPTIONS), url)).toHaveLength(900_000)
    await closed
  })
})

it('a connection is kept for the next request', async () => {
  const sockets = new Set<Socket>()
  const url = await serve(({ socket }, response) => {
    sockets.add(socket)
    response.end('[]')
  })
  const get = createHttpGet(OPTIONS)

  for (let request = 0; request < 4; request++) expect(await read(get, url)).toBe('[]')

  expect(sockets.size).toBe(1)
})
