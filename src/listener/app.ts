import { type Context, Hono } from 'hono'
import { KnownError } from '../errors.ts'
import { isLoopback as leadsToLoopback } from '../loopback.ts'
import { attentionLines } from '../report/status-text.ts'
import { healthMetricsText, metricsText } from './metrics.ts'
import type { Overview, StatusSource } from './overview.ts'
import { pageHtml } from './page.ts'
import { CONTENT_SECURITY_POLICY } from './page-assets.ts'

interface AppOptions {
  /** Null as long as the mirror is being opened. */
  source(): StatusSource | null
  /** Whether only this machine reaches the listener. */
  isLoopback(): boolean
  /** Gets an unexpected error, whose message is not shown to the client. */
  onError(error: unknown): void
  /** Epoch milliseconds. */
  now(): number
  sleep(ms: number, signal: AbortSignal): Promise<void>
}

/** How long /metrics waits for a mirror that is known to be away: most scrapers give up after ten seconds. */
const AWAY_MS = 3000

/** Lists that /check names. */
const MOST_TOLD = 20

const STARTING = 'the mirror is being opened'

/** The routes of the listener. GET and HEAD alone; no answer holds a token or data of items. */
export function createApp({ source, isLoopback, onError, now, sleep }: AppOptions): Hono {
  // It takes long only while it waits for a server, which costs no computing: so it is kept only for as long as it took.
  const health = cached(() => source()?.health() ?? { stalled: null, unusable: STARTING }, now, 1)
  const overview = cached(() => source()?.overview() ?? null, now)
  /** A text that is made of the overview; null as long as there is none. */
  const made = (text: (known: Overview) => string | Promise<string>) =>
    cached(async () => {
      const known = await overview()
      return known && text(known)
    }, now)
  const metrics = made(async (known) => metricsText(known, await health()))
  /** The metrics, or the health alone if the mirror cannot be read: Prometheus takes a 503 or a late answer for a process that is gone. */
  const metricsOrHealth = async () => {
    const { stalled, unusable } = await health()
    const alone = (why: string) => healthMetricsText({ stalled, unusable: why })
    const all = metrics().catch((error: unknown) => {
      if (!(error instanceof KnownError)) throw error
      return alone(unusable ?? error.message)
    })
    if (unusable === null) return all
    const over = new AbortController()
    const late = sleep(AWAY_MS, over.signal).then(() => alone(unusable))
    // It is aborted once the metrics have come first.
    late.catch(() => {})
    return Promise.race([all, late]).finally(() => over.abort())
  }
  const json = made(({ status }) => `${JSON.stringify(status, null, 2)}\n`)
  const page = made(pageHtml)
  /** What a user has to act on; null: nothing. */
  const alarm = async () => {
    const { stalled, unusable } = await health()
    if (stalled !== null || unusable !== null) return stalled ?? unusable
    const status = (await overview())?.status
    if (!status) return STARTING
    return status.check_exit_code === 0
      ? null
      : [status.verdict, ...attentionLines(status, MOST_TOLD)].join('\n')
  }

  const app = new Hono()
  app.use(async (context, next) => {
    for (const [name, value] of Object.entries(HEADERS)) context.header(name, value)
    const { method } = context.req
    if (method !== 'GET' && method !== 'HEAD')
      return context.text('only GET and HEAD are answered\n', 405, { Allow: 'GET, HEAD' })
    if (isLoopback() && !isLoopbackHost(context.req.header('host') ?? ''))
      return context.text(WRONG_HOST, 421)
    return next()
  })
  app.get('/healthz', async (context) => probe(context, (await health()).stalled))
  app.get('/readyz', async (context) => probe(context, (await health()).unusable))
  app.get('/check', async (context) => probe(context, await alarm()))
  app.get('/metrics', (context) => send(context, metricsOrHealth, 'text/plain; version=0.0.4; charset=utf-8'))
  app.get('/status.json', (context) => send(context, json, 'application/json; charset=utf-8'))
  app.get('/', (context) => send(context, page, 'text/html; charset=utf-8'))
  app.notFound((context) => context.text(NOT_FOUND, 404))
  app.onError((error, context) => {
    // The messages of our own errors are made to be shown.
    if (error instanceof KnownError) return context.text(`${error.message}\n`, 503)
    onError(error)
    return context.text('an internal error; the log has the details\n', 500)
  })
  return app
}

/** No other site may embed an answer, read it or open it in a frame, and no cache keeps it. */
const HEADERS: Readonly<Record<string, string>> = {
  'Cache-Control': 'no-store',
  'Content-Security-Policy': CONTENT_SECURITY_POLICY,
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
}

const WRONG_HOST =
  'this listener is on loopback and answers requests for localhost or 127.0.0.1 only. A proxy in front of it has to send ' +
  'one of these as the Host header\n'

const NOT_FOUND = 'not found. There are: / /check /healthz /readyz /metrics /status.json\n'

function probe(context: Context, fault: string | null): Response {
  return fault === null ? context.text('ok\n') : context.text(`${fault}\n`, 503)
}

async function send(context: Context, made: () => Promise<string | null>, type: string): Promise<Response> {
  const text = await made()
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
  return leadsToLoopback(name.replace(/^\[(.*)\]$/, '$1'))
}

/** How long an answer is used again at least. Milliseconds. */
const LEAST_MS = 1000

/** An answer is used this many times as long as it took to compute: so computing it takes at most 5 % of the time. */
const KEPT_TIMES = 20

/**
 * Returns a function that computes an answer and then repeats it for a while (`times` as long as that took, an error once as long, and
 * at least LEAST_MS), since reading the mirror blocks the event loop. `now` is in epoch milliseconds.
 */
export function cached<T>(
  compute: () => T | Promise<T>,
  now: () => number,
  times = KEPT_TIMES,
): () => Promise<T> {
  let kept: { answer: Promise<T>; from: number; until: number } | null = null
  return () => {
    const begun = now()
    // A clock that was set back must not keep an answer for ever.
    if (kept && begun >= kept.from && begun < kept.until) return kept.answer
    const answer = new Promise<T>((resolve) => resolve(compute()))
    const entry = { answer, from: begun, until: Number.POSITIVE_INFINITY }
    kept = entry
    const keep = (so: number) => () => {
      const ended = now()
      entry.until = ended + Math.max(LEAST_MS, so * (ended - begun))
    }
    // What failed after a long wait may succeed as soon as the server is back.
    answer.then(keep(times), keep(1))
    return answer
  }
}
