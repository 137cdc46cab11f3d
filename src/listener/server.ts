import { once } from 'node:events'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createAdaptorServer } from '@hono/node-server'
import { type Context, Hono } from 'hono'
import { KnownError, MirrorError, systemCode, UsageError } from '../errors.ts'
import { alarmText } from '../report/status-text.ts'
import type { Status } from '../report/status.ts'
import { createCounters, metricsText } from './metrics.ts'
import { pageHtml } from './page.ts'

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
  /** Gets an unexpected error, whose message is not shown to the client. */
  onError(error: unknown): void
}

/** Where no mirror is served. */
function unusableSource(why: string): Source {
  return {
    health: async () => ({ stalled: null, unusable: why }),
    status: () => Promise.reject(new MirrorError(why)),
    onError: () => {},
  }
}

const NOT_FOUND = 'not found. There are: / /check /healthz /readyz /metrics /status.json\n'

/** No other site may embed an answer, read it or open it in a frame, and no cache keeps it. The page runs nothing, and loads its own style alone. */
const HEADERS: Readonly<Record<string, string>> = {
  'Cache-Control': 'no-store',
  'Content-Security-Policy':
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'Cross-Origin-Resource-Policy': 'same-origin',
  'X-Content-Type-Options': 'nosniff',
}

/**
 * Listens on an address, and answers GET and HEAD; no answer holds a token or data of items. Throws UsageError if it cannot listen:
 * the port is in use, or not ours to use. `port`: 0 is any that is free. `elapsed`: milliseconds of a clock that is never set.
 */
export async function openListener({ host, port }: { host: string; port: number }, elapsed: () => number) {
  let source = unusableSource('the mirror is being opened')
  const counters = createCounters()
  const health = kept(() => source.health(), elapsed)
  const status = kept(() => source.status(), elapsed)

  const app = new Hono()
  app.use(async (context, next) => {
    for (const [name, value] of Object.entries(HEADERS)) context.header(name, value)
    if (!['GET', 'HEAD'].includes(context.req.method))
      return context.text('only GET and HEAD are answered\n', 405, { Allow: 'GET, HEAD' })
    return next()
  })
  app.get('/healthz', async (context) => probe(context, (await health()).stalled))
  app.get('/readyz', async (context) => probe(context, (await health()).unusable))
  app.get('/check', async (context) => {
    const { stalled } = await health()
    if (stalled !== null) return probe(context, stalled)
    const known = await status()
    if (known.check_exit_code !== 0) return probe(context, alarmText(known))
    // What is said beside needs somebody, and is no alarm.
    const isAside = known.unpublished !== null || known.daemon.processes.some(({ outdated }) => outdated)
    return context.text(isAside ? `ok\n${known.verdict}\n` : 'ok\n')
  })
  app.get('/metrics', async (context) => {
    // Also while the mirror cannot be read: Prometheus takes a 503 for a process that is gone.
    const known = await status().catch((error: unknown) => {
      if (error instanceof KnownError) return null
      throw error
    })
    const text = await metricsText(known, await health(), counters)
    return context.body(text, 200, { 'Content-Type': 'text/plain; version=0.0.4; charset=utf-8' })
  })
  app.get('/status.json', async (context) =>
    context.body(`${JSON.stringify(await status(), null, 2)}\n`, 200, {
      'Content-Type': 'application/json; charset=utf-8',
    }),
  )
  app.get('/', async (context) => context.html(await pageHtml(await status())))
  app.notFound((context) => context.text(NOT_FOUND, 404))
  app.onError((error, context) => {
    // The messages of our own errors are made to be shown.
    if (error instanceof KnownError) return context.text(`${error.message}\n`, 503)
    source.onError(error)
    return context.text('an internal error; the log has the details\n', 500)
  })

  const server = createAdaptorServer({
    fetch: app.fetch,
    hostname: 'localhost',
    overrideGlobalObjects: false,
  }) as Server
  await once(server.listen(port, host), 'listening').catch((error: unknown) => {
    const code = systemCode(error)
    const why =
      code === 'EADDRINUSE' ? 'another process listens there' : 'choose another http.host or http.port'
    throw new UsageError(`http: cannot listen on ${host} port ${port}: ${why} (${code})`)
  })
  // An error such as no more file handles must not end the sync.
  server.on('error', () => {})
  const bound = server.address() as AddressInfo
  return {
    /** Of the status page. */
    url: `http://${host.includes(':') ? `[${host}]` : host}:${bound.port}/`,
    /** Notes a request that has ended. */
    onAnswer: counters.request,
    /** From now on it answers from this source; before, it says that the mirror is being opened. */
    serve(from: Source): void {
      source = from
    },
    /** From now on it answers that there is no mirror to use, and why. */
    tellUnusable(why: string): void {
      source = unusableSource(why)
    },
    /** Ends all connections at once. */
    async close(): Promise<void> {
      if (!server.listening) return
      const closed = once(server.close(), 'close')
      server.closeAllConnections()
      await closed
    },
  }
}

function probe(context: Context, fault: string | null): Response {
  return fault === null ? context.text('ok\n') : context.text(`${fault}\n`, 503)
}

/** An answer is used for a second, or for this many times as long as it took: reading the mirror blocks the event loop of the sync. */
const KEPT_TIMES = 20
const LEAST_MS = 1000

/** Returns a function that computes an answer, an error too, and repeats it for a while. */
export function kept<T>(compute: () => Promise<T>, elapsed: () => number): () => Promise<T> {
  let last: { answer: Promise<T>; until: number } | null = null
  return () => {
    const from = elapsed()
    if (last !== null && from < last.until) return last.answer
    const made = { answer: compute(), until: Number.POSITIVE_INFINITY }
    last = made
    const done = () => {
      made.until = elapsed() + Math.max(LEAST_MS, KEPT_TIMES * (elapsed() - from))
    }
    made.answer.then(done, done)
    return made.answer
  }
}
