import { connect, type Socket } from 'node:net'
import { describe, expect, it } from 'vitest'
import { listen } from './listening.ts'
import { job, overview, source } from './overviews.ts'

const well = () => source(overview([job('acme')]))
const GET = 'GET /healthz HTTP/1.1\r\nHost: localhost\r\n'

interface Client {
  socket: Socket
  /** All that came until the connection ended. */
  ended: Promise<string>
  /** What has come, once it holds the text. */
  until(text: string): Promise<string>
}

function client(port: number): Promise<Client> {
  const socket = connect(port, '127.0.0.1')
  let received = ''
  const watchers = new Set<() => void>()
  socket.setEncoding('latin1').on('data', (text: string) => {
    received += text
    for (const watch of watchers) watch()
  })
  // A reset is an end like any other.
  socket.on('error', () => {})
  const ended = new Promise<string>((resolve) => socket.once('close', () => resolve(received)))
  const until = (text: string) =>
    new Promise<string>((resolve) => {
      const watch = () => received.includes(text) && resolve(received)
      watchers.add(watch)
      watch()
    })
  return new Promise((resolve) => socket.once('connect', () => resolve({ socket, ended, until })))
}

async function isAnswered(url: (path: string) => string): Promise<boolean> {
  return (await fetch(url('healthz'))).ok
}

describe.concurrent('a hostile client', () => {
  it('that sends its headers byte by byte is cut off', async () => {
    const { port, url } = await listen(well())
    const { socket, ended } = await client(port)
    socket.write(GET)
    const drip = setInterval(() => socket.write('X-A: 1\r\n'), 200)

    const received = await ended
    clearInterval(drip)

    expect(received).toMatch(/^HTTP\/1\.1 408 /)
    expect(await isAnswered(url)).toBe(true)
  })

  it.each([
    [
      'a whole address of another host',
      'GET http://evil.example/healthz HTTP/1.1\r\nHost: evil.example\r\n\r\n',
      421,
    ],
    [
      'a path that climbs',
      'GET /../../../etc/passwd HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n',
      404,
    ],
    ['a tunnel', 'CONNECT evil.example:443 HTTP/1.1\r\nHost: localhost\r\n\r\n', null],
    ['no host', 'GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n', 400],
    ['TRACE', 'TRACE / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n', 405],
  ])('that sends %s is refused', async (_, bytes, status) => {
    const { port, url, errors } = await listen(well())
    const { socket, ended } = await client(port)

    socket.write(bytes, 'latin1')
    socket.end()

    const received = await ended
    expect(received).toMatch(status === null ? /^$/ : new RegExp(`^HTTP/1\\.1 ${status} `))
    expect(errors).toEqual([])
    expect(await isAnswered(url)).toBe(true)
  })

  it('that sends an endless body is answered without it, and cut off', async () => {
    const { port, url } = await listen(well())
    const { socket, ended } = await client(port)
    socket.write(`${GET}Transfer-Encoding: chunked\r\n\r\n`)
    const flood = setInterval(() => socket.write(`1000\r\n${'x'.repeat(4096)}\r\n`), 5)

    const received = await ended
    clearInterval(flood)

    expect(received).toMatch(/^HTTP\/1\.1 200 /)
    expect(received).toMatch(/^connection: close\r$/im)
    expect(await isAnswered(url)).toBe(true)
  })

  it.each([
    ['asks nothing', ''],
    ['never ends its headers', GET],
    ['has had its answer and keeps the connection', `${GET}\r\n`],
  ])('that %s on all connections keeps no probe out', async (_, bytes) => {
    const { port, url } = await listen(well())
    const clients: Client[] = []
    for (let count = 0; count < 64; count++) {
      const one = await client(port)
      one.socket.write(bytes)
      if (bytes.endsWith('\r\n\r\n')) await one.until('ok')
      clients.push(one)
    }

    const answers = [await isAnswered(url), await isAnswered(url)]
    await clients[0]?.ended

    expect(answers).toEqual([true, true])
    for (const { socket } of clients) socket.destroy()
  })

  it('that waits for a page on all 64 connections keeps 56, and no probe out', async () => {
    const never = source(overview([]), { overview: () => new Promise(() => {}) })
    const { port, url } = await listen(never, { sleep: async () => {} })
    const clients = await Promise.all(Array.from({ length: 64 }, () => client(port)))
    let ended = 0
    const closed = new Promise<void>((resolve) => {
      for (const one of clients) void one.ended.then(() => ++ended === 8 && resolve())
    })

    for (const { socket } of clients) socket.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')

    await closed
    expect(await isAnswered(url)).toBe(true)
    expect(ended).toBe(8)
    for (const { socket } of clients) socket.destroy()
  })

  it('that asks for a thousand pages at once on one connection gets a hundred, spread over time, and makes no probe wait', async () => {
    const waits: number[] = []
    const { port, url } = await listen(well(), {
      now: () => 1_000_000,
      sleep: async (ms) => void waits.push(ms),
    })
    const { socket, ended } = await client(port)

    socket.write(GET.replace('healthz', '').concat('\r\n').repeat(1000))

    const received = await ended
    const before = waits.length
    expect(received.match(/^HTTP\/1\.1 200 /gm)).toHaveLength(100)
    expect(before).toBeGreaterThan(0)
    expect(await isAnswered(url)).toBe(true)
    expect(waits).toHaveLength(before)
  })
})
