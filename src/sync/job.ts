import { InterruptedError, type KnownError, toKnownError } from '../errors.ts'
import { findWalk } from './resume.ts'
import type {
  Coverage,
  Job,
  Mirror,
  PageSource,
  RunOutcome,
  RunRecord,
  RunTraffic,
  Trigger,
  Walk,
  WalkPlan,
} from './types.ts'
import { type WalkObserver, walkList } from './walk.ts'

/** What becomes of a job, told as it happens. Times are epoch milliseconds. */
export interface JobObserver extends Omit<WalkObserver, 'onRequest' | 'onThrottled' | 'onWaited'> {
  onStart(walk: Walk): void
  onFinish(result: JobResult): void
}

export interface JobOptions {
  job: Job
  plan: WalkPlan
  trigger: Trigger
  source: PageSource
  mirror: Mirror
  maxPasses: number
  now: () => number
  observer: JobObserver
  signal: AbortSignal
}

/** How a job ended. `run` is null where it never began: nothing was sent and no line of `sync_runs` was written. */
export interface JobResult {
  job: Job
  trigger: Trigger
  walk: Walk | null
  run: (RunRecord & RunTraffic) | null
  coverage: Coverage | null
  error: KnownError | null
}

/** Runs one job once: goes on with its open walk or begins one, and leaves a line in `sync_runs`. Never throws. */
export async function runJob(options: JobOptions): Promise<JobResult> {
  const { job, plan, trigger, source, mirror, observer, signal } = options
  const result: JobResult = { job, trigger, walk: null, run: null, coverage: null, error: null }
  try {
    const refusal = source.refusal()
    if (refusal) throw refusal
    throwIfStopped(signal)
    result.walk = await findWalk(job, plan, mirror, options.now())
    const runId = await mirror.beginRun(job, result.walk, trigger)
    observer.onStart(result.walk)
    const traffic: RunTraffic = { requests: 0, retries: 0, rateLimitHits: 0, rateLimitWaitMs: 0 }
    try {
      result.coverage = await walkList({
        ...options,
        walk: result.walk,
        runId,
        observer: counting(observer, traffic),
      })
    } catch (error) {
      result.error = signal.aborted ? stopped(signal) : toKnownError(error)
    }
    const record = await mirror.finishRun(runId, traffic, outcomeOf(result.error))
    result.run = { ...record, ...traffic }
  } catch (error) {
    // The first error is the cause; that the run's line could not be written either changes nothing about it.
    result.error ??= toKnownError(error)
  }
  observer.onFinish(result)
  return result
}

function counting(observer: JobObserver, traffic: RunTraffic): WalkObserver {
  return {
    onPage: observer.onPage,
    onPassAgain: observer.onPassAgain,
    onWait: observer.onWait,
    onRetry: (reason, delayMs) => {
      traffic.retries++
      observer.onRetry(reason, delayMs)
    },
    onRequest: () => {
      traffic.requests++
    },
    onThrottled: () => {
      traffic.rateLimitHits++
    },
    onWaited: (ms) => {
      traffic.rateLimitWaitMs += ms
    },
  }
}

function throwIfStopped(signal: AbortSignal): void {
  if (signal.aborted) throw stopped(signal)
}

function stopped(signal: AbortSignal): KnownError {
  // A mirror that cannot be used stops all jobs, and is the reason then.
  return signal.reason instanceof Error && signal.reason.name !== 'AbortError'
    ? toKnownError(signal.reason)
    : new InterruptedError('stopped; what is written stays, and the next run goes on from there')
}

function outcomeOf(error: KnownError | null): RunOutcome {
  if (!error) return { status: 'succeeded', errorCode: null, errorMessage: null }
  const status = error instanceof InterruptedError ? 'interrupted' : 'failed'
  return { status, errorCode: error.code, errorMessage: error.message }
}
