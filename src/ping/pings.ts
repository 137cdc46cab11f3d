import { once } from 'node:events'
import got, { type PlainResponse, RequestError } from 'got'
import pRetry from 'p-retry'

/** What a ping says; the end of its address. */
export type PingKind = 'start' | 'success' | 'fail'

export interface PingsOptions {
  /** A secret: whoever knows it can send pings. */
  address: string
  userAgent: string
  /** Whether all is well, as `status --check` has it, and the words for that. */
  verdict: () => Promise<{ isWell: boolean; text: string }>
  /** Called with how a ping ended; `lost`: why it was not delivered, without a part of the address. */
  onEnd: (kind: PingKind, lost: string | null) => void
  /** Aborted when the process is told to stop: no ping is worth a wait then. */
  signal: AbortSignal
}

export type Pings = ReturnType<typeof createPings>

/** For one ping: the reading of the verdict, and all tries. Milliseconds. */
const LIMIT_MS = 10_000

/** Tells a dead-man switch that runs begin, and how things are when they have ended. Never delays or fails a run. */
export function createPings({ address, userAgent, verdict, onEnd, signal }: PingsOptions) {
  let joining: { running: number; started: Promise<void>; fault: string | null } | null = null
  let tail = Promise.resolve()

  async function deliver(kind: PingKind, text: string, limit: AbortSignal): Promise<void> {
    const url = new URL(address)
    if (kind !== 'success') url.pathname = `${url.pathname.replace(/\/+$/, '')}/${kind}`
    const lost = await post(url, text, userAgent, limit)
    if (!signal.aborted) onEnd(kind, lost !== null && limit.aborted ? 'no answer in time' : lost)
  }

  async function tellOutcome(fault: string | null, limit: AbortSignal): Promise<void> {
    if (signal.aborted) return
    const unknown = { isWell: false, text: fault ?? 'the mirror cannot be read' }
    const late = once(limit, 'abort').then(() => unknown)
    const known = fault === null ? Promise.race([verdict(), late]).catch(() => unknown) : unknown
    const { isWell, text } = await known
    await deliver(isWell ? 'success' : 'fail', `${text}\n`, limit)
  }

  const newLimit = () => AbortSignal.any([signal, AbortSignal.timeout(LIMIT_MS)])

  return {
    /**
     * Tells that jobs begin, and returns what to call when they have ended. Jobs that begin in the same turn of the event loop are one
     * run: that of a schedule, or a command's. `fault`: why the mirror could not be used, of which it has no line.
     */
    begin(): (fault: string | null) => void {
      if (joining === null) {
        joining = { running: 0, started: deliver('start', '', newLimit()), fault: null }
        queueMicrotask(() => {
          joining = null
        })
      }
      const run = joining
      run.running++
      return (fault) => {
        run.fault ??= fault
        run.running--
        if (run.running > 0) return
        // The outcome comes last. What it waits for a start that hangs is part of its own time.
        const limit = newLimit()
        tail = Promise.all([tail, run.started]).then(() => tellOutcome(run.fault, limit))
      }
    },
    /** Resolves when no ping is left to send. */
    idle: () => tail,
  }
}

/** Follows no redirect. Returns why the ping was not delivered (the messages of got and Node may hold the address); null: it was. */
async function post(url: URL, body: string, userAgent: string, signal: AbortSignal): Promise<string | null> {
  const send = async () => {
    const request = got.stream.post(url, {
      // Node's own may lead through a proxy that the environment names.
      agent: { http: false, https: false },
      body,
      headers: { 'content-type': 'text/plain; charset=utf-8', 'user-agent': userAgent },
      followRedirect: false,
      retry: { limit: 0 },
      throwHttpErrors: false,
      signal,
    })
    // One that comes when nobody waits for the request any more would end the process.
    request.on('error', () => {})
    try {
      const [{ statusCode }] = (await once(request, 'response')) as [PlainResponse]
      if (statusCode >= 300) throw new Error(`status ${statusCode}`)
    } finally {
      // Nobody needs the rest of the answer, which may never end.
      request.destroy()
    }
  }
  try {
    await pRetry(send, { retries: 2, minTimeout: 500, signal })
    return null
  } catch (error) {
    if (error instanceof RequestError) return error.code
    return error instanceof Error && error.message.startsWith('status') ? error.message : 'the network failed'
  }
}
