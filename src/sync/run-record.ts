import { InterruptedError, type KnownError, toKnownError } from '../errors.ts'
import type { JobEvent } from './job.ts'
import type { Lease, PageRetry, RunOutcome, RunTraffic, Store } from './store.ts'
import type { PageSource } from './types.ts'

/** The reason of an error: if the run was stopped, that, and not what followed from it. */
export function runError(error: unknown, signal: AbortSignal): KnownError {
  return signal.aborted ? stopError(signal) : toKnownError(error)
}

export function stopError(signal: AbortSignal): KnownError {
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

/** The source of a job, which also saves which page it is retrying, so that others see why no page comes. */
export function notingRetries(
  source: PageSource,
  { store, lease, now }: { store: Pick<Store, 'noteRetry'>; lease: Lease; now: () => number },
): PageSource {
  return {
    ...source,
    async fetchPage(page, observe, signal, ...how) {
      let since: number | null = null
      let noted = Promise.resolve()
      const note = (retry: PageRetry | null) => {
        // A store that cannot be written ends the run at its next page; a note alone does not.
        noted = noted.then(() => store.noteRetry(lease, retry)).catch(() => {})
      }
      const noting: typeof observe = (event) => {
        if (event.kind === 'retry') {
          since ??= now()
          note({ since, until: now() + event.delayMs, error: event.reason })
        }
        observe(event)
      }
      try {
        return await source.fetchPage(page, noting, signal, ...how)
      } finally {
        if (since !== null) {
          note(null)
          await noted
        }
      }
    },
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
