import net from 'node:net'
import { listen } from './loopback.ts'

const NOTICED_MS = 5000

interface Pair {
  client: net.Socket
  server: net.Socket
  isLost: boolean
}

export type TestProxy = Awaited<ReturnType<typeof startProxy>>

/** A network between a program and a server at this port of loopback, with all that can happen to one. */
export async function startProxy(port: number) {
  const pairs = new Set<Pair>()
  let [delayMs, isFrozen, isRefused] = [0, false, false]
  let alter = unchanged

  function lose(pair: Pair): void {
    pair.isLost = true
    setTimeout(() => pair.server.resetAndDestroy(), NOTICED_MS).unref()
  }

  function pass(pair: Pair, end: 'client' | 'server'): void {
    const [from, to] = end === 'client' ? [pair.client, pair.server] : [pair.server, pair.client]
    const send = (bytes: Buffer) => {
      if (isFrozen && !pair.isLost) lose(pair)
      if (!pair.isLost && !to.destroyed) to.write(end === 'server' ? alter(bytes) : bytes)
    }
    from.on('data', (bytes) => {
      if (delayMs > 0) setTimeout(send, delayMs, bytes)
      else send(bytes)
    })
    from.on('error', () => {})
    from.on('close', () => {
      if (isFrozen || pair.isLost) return
      to.destroy()
      pairs.delete(pair)
    })
  }

  const proxy = net.createServer((client) => {
    if (isRefused) {
      client.resetAndDestroy()
      return
    }
    const pair: Pair = { client, server: net.connect(port, '127.0.0.1'), isLost: false }
    if (isFrozen) lose(pair)
    pairs.add(pair)
    pass(pair, 'client')
    pass(pair, 'server')
  })
  return {
    port: await listen(proxy),
    /** Ends all connections that there are, as a firewall does that sends a reset. */
    cut(): void {
      for (const { client, server } of pairs) {
        client.resetAndDestroy()
        server.resetAndDestroy()
      }
      pairs.clear()
    },
    /**
     * Nothing gets through any more, and nobody is told; what is new is taken and not answered. The server gives its end up
     * after five seconds, as a system does by its keepalives.
     */
    freeze(): void {
      isFrozen = true
      for (const pair of pairs) lose(pair)
    },
    /** Lets everything through again; what was frozen stays lost, as after a route has changed. */
    thaw(): void {
      isFrozen = false
    },
    /** Whether new connections are refused. */
    refuse(refused: boolean): void {
      isRefused = refused
    },
    /** Each piece takes so many milliseconds longer. */
    delay(ms: number): void {
      delayMs = ms
    },
    /** Changes what the server says, in passing. */
    alter(change: (bytes: Buffer) => Buffer): void {
      alter = change
    },
  }
}

function unchanged(bytes: Buffer): Buffer {
  return bytes
}
