import { InterruptedError, JobError, type KnownError, toKnownError } from '../errors.ts'
import { jobName, partsOfProcessName } from '../text.ts'
import type { JobEvent, JobOptions } from './job.ts'
import type { Lease, PageRetry, RunOutcome, RunTraffic, Store } from './store.ts'
import type { Observe, PageSource } from './types.ts'

// A run: it takes its job, counts what it sends, and says how it ended.

/** Between two looks at whether another process has released the job. */
const LOOK_MS = 1000

/** Another process has the job; this one waits for its end, and says so at each look. `owner`: its name. */
export interface BusyEvent {
  kind: 'busy'
  owner: string
}

interface LeaseOptions extends Pick<
  JobOptions,
  'job' | 'source' | 'waitForOwner' | 'now' | 'sleep' | 'observe' | 'signal'
> {
  store: Pick<Store, 'acquire' | 'release' | 'noteRetry'>
  /** Only to compare the list; `status` shows that. */
  isVerify?: boolean
}

/**
 * Takes the job and opens the source of its pages for `work`, and gives both back. Throws BUSY if the caller does not wait for an owner,
 * and the reason if no request may be sent. While a page is asked for again, that is saved, so that others see why none comes.
 * @param work `observe`: for its own events.
 */
export async function withLease<T>(
  options: LeaseOptions,
  work: (lease: Lease, source: PageSource, observe: Observe<JobEvent>) => Promise<T>,
): Promise<T> {
  const { store, now } = options
  const lease = await acquire(options)
  let retry: PageRetry | null = null
  let noted = Promise.resolve()
  const note = (value: PageRetry | null) => {
    retry = value
    // A store that cannot be written ends the run at its next page; a note alone does not.
    noted = noted.then(() => store.noteRetry(lease, value)).catch(() => {})
  }
  const observe = (event: JobEvent) => {
    if (event.kind === 'retry') {
      const error = `${event.code}: ${event.reason}`
      note({ since: retry?.since ?? now(), until: now() + event.delayMs, error })
    } else if (retry && (event.kind === 'page' || event.kind === 'notices')) note(null)
    options.observe(event)
  }
  try {
    const source = await options.source()
    const refusal = await source.refusal()
    // Nothing was sent, so no line of `sync_runs` tells of it.
    if (refusal) throw refusal
    return await work(lease, source, observe)
  } finally {
    await noted
    await store.release(lease)
  }
}

/** Takes the job, or waits until its owner finishes or dies. */
async function acquire(options: LeaseOptions): Promise<Lease> {
  const { job, store, isVerify, waitForOwner, sleep, observe, signal } = options
  for (;;) {
    signal.throwIfAborted()
    const { lease, heldBy } = await store.acquire(job, isVerify)
    if (lease) return lease
    if (!waitForOwner)
      throw new JobError(
        'BUSY',
        `${jobName(job)}: ${ownerName(heldBy)} is working on it; nothing is wrong, and the next run tries again (--wait waits until that is done)`,
      )
    observe({ kind: 'busy', owner: heldBy })
    await sleep(LOOK_MS, signal)
  }
}

/** `process 4711 on worker-2`. `name`: as `process-name.ts` makes it; or `another process`, while it is not written yet. */
export function ownerName(name: string): string {
  const parts = partsOfProcessName(name)
  return parts ? `process ${parts.pid} on ${parts.host}` : name
}

/** The error that a run reports: if it was stopped, the stop, and not the errors that followed from it. */
export function runError(error: unknown, signal: AbortSignal): KnownError {
  if (!signal.aborted) return toKnownError(error)
  // A failed mirror stops all jobs and is then the reason.
  return signal.reason instanceof Error && signal.reason.name !== 'AbortError'
    ? toKnownError(signal.reason)
    : new InterruptedError('stopped; what is written stays, and the next run continues from there')
}

/**
 * How a run ended. One that meets a held token, or too long a wait, before its first request is `refused`: it leaves no line in `sync_runs`.
 * @param heldBack Removals that wait for a decision.
 */
export function runOutcome(
  error: KnownError | null,
  heldBack: KnownError | null,
  { requests }: RunTraffic,
): RunOutcome {
  const told = error ?? heldBack
  const isRefused = requests === 0 && (error?.code === 'UNAUTHORIZED' || error?.code === 'RATE_LIMITED')
  const failure = isRefused ? 'refused' : error instanceof InterruptedError ? 'interrupted' : 'failed'
  return {
    status: error ? failure : 'succeeded',
    errorCode: told?.code ?? null,
    errorMessage: told?.message ?? null,
  }
}

export function noTraffic(): RunTraffic {
  return { requests: 0, retries: 0, rateLimitHits: 0, rateLimitWaitMs: 0 }
}

export function countTraffic(traffic: RunTraffic, event: JobEvent): void {
  if (event.kind === 'request') traffic.requests++
  else if (event.kind === 'retry') traffic.retries++
  else if (event.kind === 'throttled') traffic.rateLimitHits++
  else if (event.kind === 'waited') traffic.rateLimitWaitMs += event.ms
}
