import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { getRequestListener } from '@hono/node-server'
import { type Context, Hono } from 'hono'
import { KnownError, UsageError } from '../errors.ts'
import { isLoopback } from '../loopback.ts'
import type { Status } from '../report/status.ts'
import { alarmText } from '../report/status-text.ts'

import { type Counters, healthMetrics, metricsText } from './metrics.ts'
import { CONTENT_SECURITY_POLICY, pageHtml } from './page.ts'

/** Whether the process is well, for probes. */
export interface Health {
  /** Null if the scheduler ticks; else what is wrong. */
  stalled: string | null
  /** Null if the mirror can be used; else why not. */
  unusable: string | null
}

/** What the listener answers from. */
export interface Source {
  health(): Promise<Health>
  /** Throws MirrorError. */
  status(): Promise<Status>
  counters: Counters
  /** Gets an unexpected error, whose message is not shown to the client. */
  onError(error: unknown): void
}

const STARTING = 'the mirror is being opened'
const NOT_FOUND = 'not found. There are: / /check /healthz /readyz /metrics /status.json\n'
const WRONG_HOST =
  'this listener is on loopback and answers requests for localhost or 127.0.0.1 only. A proxy in front of it has to send ' +
  'one of these as the Host header\n'

/** No other site may embed an answer, read it or open it in a frame, and no cache keeps it. */
const HEADERS: Readonly<Record<string, string>> = {
  'Cache-Control': 'no-store',
  'Content-Security-Policy': CONTENT_SECURITY_POLICY,
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
}

/**
 * Listens on an address, and answers GET and HEAD; no answer holds a token or data of items. Throws UsageError if it cannot listen:
 * the port is in use, or not ours to use. `port`: 0 is any that is free. `now`: epoch milliseconds.
 */
export async function openListener(address: { host: string; port: number }, now: () => number) {
  let source: Source | null = null
  let isLocal = true
  const health = kept(async () => source?.health() ?? { stalled: null, unusable: STARTING }, now)
  const status = kept(async () => source?.status() ?? null, now)

  /** What somebody has to act on; null: nothing. */
  async function alarm(): Promise<string | null> {
    const { stalled, unusable } = await health()
    if (stalled !== null || unusable !== null) return stalled ?? unusable
    const known = await status()
    if (known === null) return STARTING
    return known.check_exit_code === 0 ? null : alarmText(known)
  }

  /** Also while the mirror cannot be read: Prometheus takes a 503 for a process that is gone. */
  async function metrics(): Promise<string | null> {
    const { stalled, unusable } = await health()
    const known = await status().catch((error: unknown) => {
      if (error instanceof KnownError) return null
      throw error
    })
    return (
      source &&
      (known
        ? metricsText(known, { stalled, unusable }, source.counters)
        : healthMetrics({ stalled, unusable }))
    )
  }

  const app = new Hono()
  app.use(async (context, next) => {
    for (const [name, value] of Object.entries(HEADERS)) context.header(name, value)
    if (!['GET', 'HEAD'].includes(context.req.method))
      return context.text('only GET and HEAD are answered\n', 405, { Allow: 'GET, HEAD' })
    if (isLocal && !isLoopbackHost(context.req.header('host') ?? '')) return context.text(WRONG_HOST, 421)
    return next()
  })
  app.get('/healthz', async (context) => probe(context, (await health()).stalled))
  app.get('/readyz', async (context) => probe(context, (await health()).unusable))
  app.get('/check', async (context) => {
    const why = await alarm()
    // What it adds needs somebody, and is no alarm.
    const known = why === null ? await status() : null
    return known && (known.unpublished !== null || known.daemon.processes.some((one) => one.outdated))
      ? context.text(`ok\n${known.verdict}\n`)
      : probe(context, why)
  })
  app.get('/metrics', async (context) =>
    send(context, await metrics(), 'text/plain; version=0.0.4; charset=utf-8'),
  )
  app.get('/status.json', async (context) => {
    const known = await status()
    return send(context, known && `${JSON.stringify(known, null, 2)}\n`, 'application/json; charset=utf-8')
  })
  app.get('/', async (context) => {
    const known = await status()
    return send(context, known && (await pageHtml(known)), 'text/html; charset=utf-8')
  })
  app.notFound((context) => context.text(NOT_FOUND, 404))
  app.onError((error, context) => {
    // The messages of our own errors are made to be shown.
    if (error instanceof KnownError) return context.text(`${error.message}\n`, 503)
    source?.onError(error)
    return context.text('an internal error; the log has the details\n', 500)
  })

  const { bound, close } = await listen(app, address)
  isLocal = isLoopback(bound.address)
  return {
    /** Of the status page. */
    url: `http://${address.host.includes(':') ? `[${address.host}]` : address.host}:${bound.port}/`,
    /** From now on it answers from this source; before, it says that the mirror is being opened. */
    serve(from: Source): void {
      source = from
    },
    /** Ends all connections at once. */
    close,
  }
}

function probe(context: Context, fault: string | null): Response {
  return fault === null ? context.text('ok\n') : context.text(`${fault}\n`, 503)
}

function send(context: Context, text: string | null, type: string): Response {
  return text === null
    ? context.text(`${STARTING}\n`, 503)
    : context.body(text, 200, { 'Content-Type': type })
}

/**
 * Whether a request to a listener on loopback names a host that leads to loopback. A page on the web can have its own name
 * resolved to 127.0.0.1, and would then read our answers as its own; its requests carry that name.
 */
export function isLoopbackHost(host: string): boolean {
  const [, name = ''] = /^(\[[0-9a-f:.]+\]|[^:]*)(?::\d{1,5})?$/i.exec(host) ?? []
  return isLoopback(name.replace(/^\[(.*)\]$/, '$1'))
}

/** An answer is used for a second, or for this many times as long as it took: reading the mirror blocks the event loop of the sync. */
const KEPT_TIMES = 20
const LEAST_MS = 1000

/** Returns a function that computes an answer, an error too, and repeats it for a while. */
export function kept<T>(compute: () => Promise<T>, now: () => number): () => Promise<T> {
  let last: { answer: Promise<T>; from: number; until: number } | null = null
  return () => {
    const from = now()
    // A clock that was set back must not keep an answer for ever.
    if (last && from >= last.from && from < last.until) return last.answer
    const made = { answer: compute(), from, until: Number.POSITIVE_INFINITY }
    last = made
    const done = () => {
      made.until = now() + Math.max(LEAST_MS, KEPT_TIMES * (now() - from))
    }
    made.answer.then(done, done)
    return made.answer
  }
}

/** A client has this long to send its request, and one that does not read its answer is cut off. Milliseconds. */
const LIMITS = { headersTimeout: 5000, requestTimeout: 5000, keepAliveTimeout: 5000, maxHeaderSize: 8192 }
const STILL_MS = 20_000

async function listen(app: Hono, { host, port }: { host: string; port: number }) {
  const answer = getRequestListener(app.fetch, { hostname: 'localhost', overrideGlobalObjects: false })
  const server = createServer({ ...LIMITS, connectionsCheckingInterval: 1000 }, (request, response) => {
    void answer(request, response)
  })
  server.timeout = STILL_MS
  server.maxConnections = 100
  try {
    await once(server.listen(port, host), 'listening')
  } catch (error) {
    throw listenError(error as NodeJS.ErrnoException, host, port)
  }
  // An error such as no more file handles must not end the sync.
  server.on('error', () => {})
  return {
    bound: server.address() as AddressInfo,
    async close(): Promise<void> {
      if (!server.listening) return
      const closed = once(server.close(), 'close')
      server.closeAllConnections()
      await closed
    },
  }
}

const REASONS: Readonly<Record<string, string>> = {
  EADDRINUSE:
    'another process listens there, maybe another start with this file; end it, or give this one another port: ' +
    'http.port may name an environment variable, and port 0 is any that is free (the log names it)',
  EACCES: 'this user may not use that port; choose one above 1023',
}

function listenError({ code, message }: NodeJS.ErrnoException, host: string, port: number): UsageError {
  const reason = REASONS[code ?? ''] ?? 'look at http.host and http.port in the configuration'
  return new UsageError(`http: cannot listen on ${host} port ${port}: ${reason} (${code ?? message})`)
}
