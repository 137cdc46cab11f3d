import { Agent as HttpAgent } from 'node:http'
import { Agent as HttpsAgent } from 'node:https'
import got, { HTTPError, RequestError } from 'got'

/** What a ping says; the end of its address. */
export type PingKind = 'start' | 'success' | 'fail'

export interface PingsOptions {
  /** A secret: whoever knows it can send pings. Null: none are sent. */
  address: string | null
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
    if (address === null || signal.aborted) return
    try {
      await send(addressOf(address, kind), text, userAgent, limit)
      onEnd(kind, null)
    } catch (error) {
      if (!signal.aborted) onEnd(kind, limit.aborted ? 'no answer in time' : reasonOf(error))
    }
  }

  async function tellOutcome(fault: string | null, limit: AbortSignal): Promise<void> {
    if (signal.aborted) return
    const unknown = { isWell: false, text: fault ?? 'the mirror cannot be read' }
    const late = new Promise<typeof unknown>((resolve) =>
      limit.addEventListener('abort', () => resolve(unknown)),
    )
    const { isWell, text } =
      fault === null ? await Promise.race([verdict(), late]).catch(() => unknown) : unknown
    await deliver(isWell ? 'success' : 'fail', `${text}\n`, limit)
  }

  const newLimit = () => AbortSignal.any([signal, AbortSignal.timeout(LIMIT_MS)])

  return {
    /**
     * Tells that jobs begin, and returns what to call when they have ended. Jobs that begin in the same turn of the event loop are one
     * run: that of a schedule, or a command's. `fault`: why the mirror could not be used, of which it has no line.
     */
    begin(): (fault: string | null) => void {
      if (address === null) return () => {}
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
        const limit = newLimit()
        // The outcome comes last, and is not kept waiting by a start that hangs for longer than its own time.
        tail = Promise.all([tail, run.started]).then(() => tellOutcome(run.fault, limit))
      }
    },
    /** Resolves when no ping is left to send. */
    idle: () => tail,
  }
}

function addressOf(address: string, kind: PingKind): URL {
  const url = new URL(address)
  if (kind !== 'success') url.pathname = `${url.pathname.replace(/\/+$/, '')}/${kind}`
  return url
}

/** Follows no redirect, and takes no proxy from the environment, as the global agent may. */
async function send(url: URL, body: string, userAgent: string, signal: AbortSignal): Promise<void> {
  const { statusCode } = await got.post(url, {
    body,
    headers: { 'content-type': 'text/plain; charset=utf-8', 'user-agent': userAgent },
    agent: { http: new HttpAgent(), https: new HttpsAgent() },
    followRedirect: false,
    retry: { limit: 2, methods: ['POST'] },
    signal,
  })
  if (statusCode > 299) throw new Error(`status ${statusCode}`)
}

/** The messages of got and Node may hold the address. */
function reasonOf(error: unknown): string {
  if (error instanceof HTTPError) return `status ${error.response.statusCode}`
  if (error instanceof RequestError) return error.code
  return error instanceof Error && /^status \d+$/.test(error.message) ? error.message : 'the network failed'
}
