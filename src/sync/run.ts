import { InterruptedError, JobError, type KnownError, toKnownError } from '../errors.ts'
import { jobName } from '../text.ts'
import type { JobEvent, JobOptions } from './job.ts'
import { type OwnerWork, ownerName, workText } from './owner-work.ts'
import type { Lease, PageRetry, RunOutcome, RunTraffic, Store } from './store.ts'
import type { Observe, PageSource, RequestEvent } from './types.ts'

// A run: it takes its job, counts what it sends, and says how it ended.

// How often to check whether another process has released the job: each look takes the mirror's lock for a moment.
const FIRST_LOOK_MS = 250
const LONGEST_LOOK_MS = 2000
/** The pause as a part of the time waited so far: a wait of hours needs no look four times a second. */
const LOOK_SHARE = 0.05

/** A page has come, of a walk or of a refresh. */
const CAME = ['page', 'notices']

/** Another process has the job; this one waits for its end, and says so at each look. `owner`: its name. */
export interface BusyEvent {
  kind: 'busy'
  owner: string
  work: OwnerWork | null
}

interface LeaseOptions
  extends Pick<JobOptions, 'job' | 'source' | 'waitForOwner' | 'now' | 'sleep' | 'signal'>,
    Partial<Pick<JobOptions, 'trigger'>> {
  store: Pick<Store, 'acquire' | 'release' | 'noteRetry'>
  /** Only to compare the list; `status` shows that. */
  isVerify?: boolean
  observe: Observe<BusyEvent>
}

/**
 * Takes the job and opens the source of its pages for `work`, and gives both back. Throws BUSY if the caller does not wait for an owner,
 * and the reason if no request may be sent. `hear` is told what `work` observes: what others have to know of it is saved.
 */
export async function withLease<T>(
  options: LeaseOptions,
  work: (lease: Lease, source: PageSource, hear: Observe<{ kind: string }>) => Promise<T>,
): Promise<T> {
  const { store } = options
  const lease = await acquire(options)
  const retries = new RetryNotes(lease, options)
  try {
    const source = await options.source()
    try {
      const refusal = await source.refusal()
      // Nothing was sent, so no line of `sync_runs` tells of it.
      if (refusal) throw refusal
      return await work(lease, source, (event) => retries.hear(event))
    } finally {
      await source.close()
    }
  } finally {
    await retries.written
    await store.release(lease)
  }
}

/** Takes the job, or waits until its owner finishes or dies. */
async function acquire(options: LeaseOptions): Promise<Lease> {
  const { job, store, isVerify, waitForOwner, trigger, sleep, observe, signal } = options
  let waitedMs = 0
  for (;;) {
    signal.throwIfAborted()
    const { lease, heldBy, work = null } = await store.acquire(job, isVerify)
    if (lease) return lease
    if (!waitForOwner) {
      const place = jobName(job)
      const owner = `${ownerName(heldBy, work)} ${workText(work)}`
      const then =
        trigger === 'schedule' ? 'the next scheduled run tries again' : '--wait waits until that is done'
      throw new JobError('BUSY', `${place}: ${owner}; nothing is wrong, and ${then}`)
    }
    observe({ kind: 'busy', owner: heldBy, work })
    const pauseMs = Math.min(Math.max(FIRST_LOOK_MS, waitedMs * LOOK_SHARE), LONGEST_LOOK_MS)
    await sleep(pauseMs, signal)
    waitedMs += pauseMs
  }
}

/** Saves that a page is asked for again, so that others see why none comes; until one has come, or the lease ends. */
class RetryNotes {
  written: Promise<void> = Promise.resolve()
  #since: number | null = null
  #lease: Lease
  #options: { store: Pick<Store, 'noteRetry'>; now: () => number }

  constructor(lease: Lease, options: { store: Pick<Store, 'noteRetry'>; now: () => number }) {
    this.#lease = lease
    this.#options = options
  }

  hear(event: { kind: string } | RequestEvent): void {
    const { now } = this.#options
    if ('delayMs' in event) {
      this.#since ??= now()
      const error = `${event.code}: ${event.reason}`
      this.#note({ since: this.#since, until: now() + event.delayMs, error })
    } else if (this.#since !== null && CAME.includes(event.kind)) {
      this.#since = null
      this.#note(null)
    }
  }

  #note(retry: PageRetry | null): void {
    // A store that cannot be written ends the run at its next page; a note alone does not.
    this.written = this.written.then(() => this.#options.store.noteRetry(this.#lease, retry)).catch(() => {})
  }
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
  if (!error)
    return { status: 'succeeded', errorCode: heldBack?.code ?? null, errorMessage: heldBack?.message ?? null }
  const isRefused = requests === 0 && (error.code === 'UNAUTHORIZED' || error.code === 'RATE_LIMITED')
  const status = isRefused ? 'refused' : error instanceof InterruptedError ? 'interrupted' : 'failed'
  return { status, errorCode: error.code, errorMessage: error.message }
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
