import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { getRequestListener } from '@hono/node-server'
import { UsageError } from '../errors.ts'
import { isLoopback } from '../loopback.ts'
import { createApp } from './app.ts'
import { createConnections, createTurns } from './load.ts'
import type { StatusSource } from './overview.ts'

export interface ListenerOptions {
  host: string
  /** 0: any that is free. */
  port: number
  /** Epoch milliseconds. */
  now: () => number
  sleep: (ms: number, signal?: AbortSignal) => Promise<void>
}

/** How long a client may take to send its request. Milliseconds. */
const REQUEST_MS = 5000

/** A connection on which nothing moves for so long is ended. Milliseconds. */
const STILL_MS = 20_000

/** A scraper that comes every 15 seconds opens a connection each time, and holds none. */
const IDLE_MS = 5000

const PROBES: ReadonlySet<string> = new Set(['/check', '/healthz', '/readyz'])

const LIMITS = {
  connections: 64,
  forProbes: 8,
  requestsAConnection: 100,
  headerBytes: 8192,
}

/**
 * Listens on an address. Throws UsageError if it cannot: the port is in use, or not ours to use.
 *
 * The answers are computed in the event loop of the sync, so everything about a client is bounded: its connections, its
 * time, its headers, how many requests are answered a second, and how often an answer is computed.
 */
export async function openListener(options: ListenerOptions) {
  const { now, sleep } = options
  let serving: { source: StatusSource; onError: (error: unknown) => void } | null = null
  let boundTo = ''
  const app = createApp({
    source: () => serving?.source ?? null,
    isLoopback: () => isLoopback(boundTo),
    onError: (error) => serving?.onError(error),
    now,
    sleep,
  })
  const answer = getRequestListener(app.fetch, {
    hostname: 'localhost',
    overrideGlobalObjects: false,
    errorHandler: () => new Response('bad request\n', { status: 400 }),
  })
  // A flood of anything else does not delay a probe.
  const [probeTurn, turn] = [createTurns(now, sleep), createTurns(now, sleep)]
  const { connections: most, forProbes } = LIMITS
  const connections = createConnections({ most, forProbes })

  async function respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const isProbe = PROBES.has(request.url ?? '')
    connections.watch(response, isProbe)
    const isGone = () => request.socket.destroyed
    await (isProbe ? probeTurn : turn)(isGone)
    if (!isGone()) await answer(request, response)
  }

  const server = createServer(
    {
      headersTimeout: REQUEST_MS,
      requestTimeout: REQUEST_MS,
      keepAliveTimeout: IDLE_MS,
      connectionsCheckingInterval: 1000,
      maxHeaderSize: LIMITS.headerBytes,
    },
    // A sleep fails only when the process ends.
    (request, response) => void respond(request, response).catch(() => request.socket.destroy()),
  )
  server.on('connection', connections.admit)
  server.maxRequestsPerSocket = LIMITS.requestsAConnection
  server.timeout = STILL_MS

  const bound = await listen(server, options)
  boundTo = bound.address
  return {
    /** Of the status page. */
    url: `http://${options.host.includes(':') ? `[${options.host}]` : options.host}:${bound.port}/`,
    /** From now on it answers from this source; before, it says that the mirror is being opened. */
    serve(source: StatusSource, onError: (error: unknown) => void): void {
      serving = { source, onError }
    },
    /** Ends all connections at once. */
    close: async (): Promise<void> => {
      if (!server.listening) return
      const closed = once(server.close(), 'close')
      server.closeAllConnections()
      await closed
    },
  }
}

/** Returns the address that it listens on. */
async function listen(
  server: Server,
  { host, port }: Pick<ListenerOptions, 'host' | 'port'>,
): Promise<AddressInfo> {
  try {
    await once(server.listen(port, host), 'listening')
  } catch (error) {
    throw listenError(error as NodeJS.ErrnoException, host, port)
  }
  // An error such as no more file handles must not end the sync.
  server.on('error', () => {})
  return server.address() as AddressInfo
}

const REASONS: Readonly<Record<string, string>> = {
  EADDRINUSE:
    'another process listens there, maybe another start with this file; end it, or give this one another port: ' +
    'http.port may name an environment variable, and port 0 is any that is free (the log names it)',
  EACCES: 'this user may not use that port; choose one above 1023',
  EADDRNOTAVAIL:
    'the machine has no such address; 127.0.0.1 is this machine alone, 0.0.0.0 all its addresses',
  ENOTFOUND: 'the name is not known; write an IP address',
}

function listenError(error: NodeJS.ErrnoException, host: string, port: number): UsageError {
  const reason = REASONS[error.code ?? ''] ?? 'look at http.host and http.port in the configuration'
  return new UsageError(
    `http: cannot listen on ${host} port ${port}: ${reason} (${error.code ?? error.message})`,
  )
}
