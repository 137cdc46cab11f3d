import { once } from 'node:events'
import type { Socket } from 'node:net'
import { gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { createHttpGet, type HttpGet, openConnections } from '../../../src/api/http.ts'
import { createSetting, readArrived } from '../helpers/api.ts'
import { pageText } from '../helpers/job.ts'
import { serve, serveRaw } from '../helpers/server.ts'

const OPTIONS = { timeoutMs: 20_000, maxResponseBytes: 1_000_000, userAgent: 'admin-mirror/0.0.0' }
const HOUR_MS = 3_600_000

/** Two lists that one process reads, and what closes their connections. */
function openLists(idleMs = HOUR_MS, count = 2): { get: HttpGet; close(): void }[] {
  return Array.from({ length: count }, () => {
    const connections = openConnections(idleMs)
    return { get: createHttpGet(OPTIONS, connections), close: connections.close }
  })
}

async function read(get: HttpGet | undefined, url: URL): Promise<string> {
  await readArrived()
  const response = await get?.(url, {}, new AbortController().signal)
  return new TextDecoder().decode(response?.body)
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
  it.each(COPIES)(
    'is not taken for a response, of its list or of another one: %s',
    async (_when, write, wait) => {
      const url = await serveInTurn((socket, body) => write(socket, answerWith(body)))
      const [one, other] = openLists()

      expect(await read(one?.get, url)).toBe('first')
      await wait()
      expect(await read(other?.get, url)).toBe('second')
      await wait()

      expect(await read(one?.get, url)).toBe('third')
    },
  )

  it('is dropped if it arrived before the next request and was not read yet', async () => {
    const { url, sockets } = await servePages()
    const { fetchPage } = createSetting({ options: { baseUrl: url.origin } })
    await fetchPage(1)

    sockets[0]?.write(answerWith(pageText(1, 3)))

    expect(await fetchPage(2)).toMatchObject({ number: 2 })
    expect(new Set(sockets).size).toBe(2)
  })

  it('is not taken for a response of another list, even after that request was sent', async () => {
    const sockets: Socket[] = []
    const url = await serveInTurn((socket, body) => {
      // The copy goes over the old connection before the answer goes over the new one.
      if (sockets.length > 0) sockets[0]?.write(answerWith('first'))
      sockets.push(socket)
      setImmediate(() => socket.write(answerWith(body)))
    })
    const [one, other] = openLists()

    expect(await read(one?.get, url)).toBe('first')
    expect(await read(other?.get, url)).toBe('second')
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
    const [list] = openLists()

    expect(await read(list?.get, url)).toHaveLength(900_000)
    await closed
  })
})

/** A server, and the connections that it has. */
async function countConnections() {
  const open = new Set<Socket>()
  let opened = 0
  const url = await serve(({ socket }, response) => {
    if (!open.has(socket)) opened++
    open.add(socket)
    socket.once('close', () => open.delete(socket))
    response.end('[]')
  })
  return { url, open: () => open.size, opened: () => opened }
}

describe('the connections of lists', () => {
  it('are closed when they receive bytes while idle, even without a check by Node', async () => {
    const url = await serve((_request, response) => response.end('[]'))
    const { agent } = openConnections(HOUR_MS)
    await read(createHttpGet(OPTIONS, { agent, close: () => {} }), url)
    await expect.poll(() => Object.keys(agent.http.freeSockets)).toHaveLength(1)
    const [socket] = Object.values(agent.http.freeSockets).flat()

    // As the socket does in a Node that keeps these listeners.
    socket?.emit('data', Buffer.from('HTTP/1.1 200 OK'))

    expect(socket?.destroyed).toBe(true)
  })

  it('are kept, one for each list, until the list is closed', async () => {
    const server = await countConnections()
    const lists = openLists(HOUR_MS, 3)

    for (let round = 0; round < 4; round++) for (const { get } of lists) await read(get, server.url)

    expect([server.opened(), server.open()]).toEqual([3, 3])
    for (const { close } of lists.slice(0, 2)) close()
    await expect.poll(server.open).toBe(1)
  })

  it('are closed after their idle time, but not while a response is awaited', async () => {
    const sockets = new Set<Socket>()
    let closed = 0
    const url = await serve(({ socket }, response) => {
      if (!sockets.has(socket)) socket.once('close', () => closed++)
      sockets.add(socket)
      setTimeout(() => response.end('late'), 200)
    })
    const [list] = openLists(50)

    expect(await read(list?.get, url)).toBe('late')
    await expect.poll(() => closed).toBe(1)
  })
})
