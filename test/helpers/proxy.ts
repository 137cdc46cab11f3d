import net from 'node:net'
import { onTestFinished } from 'vitest'

/** A network between a program and a server on loopback, with all that can happen to one. */
export interface TestProxy {
  port: number
  /** Ends all connections that there are, as a firewall does that sends a reset. */
  cut(): void
  /**
   * Nothing gets through any more, and nobody is told; what is new is taken and not answered. The server gives its end up
   * after five seconds, as a system does by its keepalives.
   */
  freeze(): void
  /** Lets everything through again; what was frozen stays lost, as after a route has changed. */
  thaw(): void
  /** Whether new connections are refused. */
  refuse(refused: boolean): void
  /** Each piece takes so many milliseconds longer. */
  delay(ms: number): void
  /** Changes what the server says, in passing. */
  alter(change: (bytes: Buffer) => Buffer): void
  close(): Promise<void>
}

const NOTICED_MS = 5000

interface Pair {
  client: net.Socket
  server: net.Socket
  isLost: boolean
}

/** `port`: of the server on loopback. */
export async function startProxy(port: number): Promise<TestProxy> {
  const pairs = new Set<Pair>()
  let [delayMs, isFrozen, isRefused] = [0, false, false]
  let alter = unchanged

  function pass(pair: Pair, from: net.Socket, to: net.Socket, change: (bytes: Buffer) => Buffer): void {
    from.on('data', (bytes) => {
      const send = () => {
        if (isFrozen && !pair.isLost) lose(pair)
        if (!pair.isLost && !to.destroyed) to.write(change(bytes))
      }
      if (delayMs > 0) setTimeout(send, delayMs)
      else send()
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
    const server = net.connect(port, '127.0.0.1')
    const pair: Pair = { client, server, isLost: false }
    if (isFrozen) lose(pair)
    pairs.add(pair)
    pass(pair, client, server, unchanged)
    pass(pair, server, client, (bytes) => alter(bytes))
  })
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))

  function lose(pair: Pair): void {
    pair.isLost = true
    setTimeout(() => pair.server.resetAndDestroy(), NOTICED_MS).unref()
  }

  function cut(): void {
    for (const { client, server } of pairs) {
      client.resetAndDestroy()
      server.resetAndDestroy()
    }
    pairs.clear()
  }

  const close = () =>
    new Promise<void>((resolve) => {
      cut()
      proxy.close(() => resolve())
    })
  onTestFinished(close)
  return {
    port: (proxy.address() as net.AddressInfo).port,
    cut,
    freeze() {
      isFrozen = true
      for (const pair of pairs) lose(pair)
    },
    thaw() {
      isFrozen = false
    },
    refuse(refused) {
      isRefused = refused
    },
    delay(ms) {
      delayMs = ms
    },
    alter(change) {
      alter = change
    },
    close,
  }
}

function unchanged(bytes: Buffer): Buffer {
  return bytes
}
