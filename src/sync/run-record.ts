import { InterruptedError, type KnownError, toKnownError } from '../errors.ts'
import type { JobEvent } from './job.ts'
import type { RunOutcome, RunTraffic } from './store.ts'

/** The reason of an error: if the run was stopped, that, and not what followed from it. */
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
