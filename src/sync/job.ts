import { InterruptedError, JobError, type KnownError, toKnownError } from '../errors.ts'
import type { Mirror } from './mirror.ts'
import { heldError, type RemovalRules } from './removals.ts'
import { findWalk, recallSeenItems } from './resume.ts'
import type {
  Job,
  PageSource,
  RunOutcome,
  RunRecord,
  RunTraffic,
  Trigger,
  Walk,
  WalkOutcome,
  WalkPlan,
} from './types.ts'
import { type WalkObserver, walkList } from './walk.ts'

/** What becomes of a job, told as it happens. Times are epoch milliseconds. */
export interface JobObserver extends Omit<WalkObserver, 'onThrottled' | 'onWaited'> {
  /** Another process has the job, and its end is waited for. */
  onBusy(owner: string): void
  onStart(walk: Walk): void
  onFinish(result: JobResult): void
}

export interface JobOptions {
  job: Job
  plan: WalkPlan
  trigger: Trigger
  /** Asked when the job is ours: what it has of the token is then as new as can be. */
  source: () => Promise<PageSource>
  mirror: Mirror
  maxPasses: number
  removals: RemovalRules
  /** Whether to wait for a job that another process has. */
  waitForOwner: boolean
  now: () => number
  sleep: (ms: number, signal: AbortSignal) => Promise<void>
  turn: () => Promise<void>
  observer: JobObserver
  signal: AbortSignal
}

/**
 * How a job ended. `walk` is null where it never began: nothing was sent and no line of `sync_runs` was written. `run` is
 * null there too, and where the mirror could not say any more what the run did.
 */
export interface JobResult extends Omit<WalkOutcome, 'totalOff'> {
  job: Job
  trigger: Trigger
  walk: Walk | null
  run: (RunRecord & RunTraffic) | null
  error: KnownError | null
  /** Of a run that succeeded: what waits for somebody's word. */
  held: KnownError | null
}

/** How often a job that another process has is asked for. */
const LOOK_EVERY_MS = 250

/** Runs one job once: goes on with its open walk or begins one, and leaves a line in `sync_runs`. Never throws. */
export async function runJob(options: JobOptions): Promise<JobResult> {
  const { job, trigger, mirror, observer, signal } = options
  const result: JobResult = {
    job,
    trigger,
    walk: null,
    run: null,
    coverage: null,
    expectedMissed: null,
    untrusted: null,
    error: null,
    held: null,
  }
  try {
    await claim(options)
    try {
      await runOwned(options, result)
    } finally {
      await mirror.releaseJob(job)
    }
  } catch (error) {
    // The first error is the cause; that the run's line could not be written either changes nothing about it.
    result.error ??= signal.aborted ? stopped(signal) : toKnownError(error)
  }
  observer.onFinish(result)
  return result
}

export interface ClaimOptions extends Pick<JobOptions, 'job' | 'waitForOwner' | 'sleep' | 'signal'> {
  mirror: Pick<Mirror, 'claimJob'>
  observer: Pick<JobObserver, 'onBusy'>
}

/** Takes the job, or waits until its owner has finished or died. Throws `BUSY` where nobody asked to wait. */
export async function claim({
  job,
  mirror,
  waitForOwner,
  sleep,
  observer,
  signal,
}: ClaimOptions): Promise<void> {
  for (let told = false; ; told = true) {
    if (signal.aborted) throw stopped(signal)
    const claimed = await mirror.claimJob(job)
    if (claimed.taken) return
    const { owner } = claimed
    if (!waitForOwner) {
      const place = `${job.organization.name} ${job.collection.name}`
      throw new JobError(
        'BUSY',
        `${place}: another process (${owner}) is working on it; --wait waits for its end`,
      )
    }
    if (!told) observer.onBusy(owner)
    await sleep(LOOK_EVERY_MS, signal)
  }
}

async function runOwned(options: JobOptions, result: JobResult): Promise<void> {
  const source = await options.source()
  try {
    await runFrom(source, options, result)
  } finally {
    await source.close()
  }
}

async function runFrom(source: PageSource, options: JobOptions, result: JobResult): Promise<void> {
  const { job, plan, trigger, mirror, observer, signal } = options
  const refusal = await source.refusal()
  if (refusal) throw refusal
  const { walk, replace } = await findWalk(job, plan, mirror, options.now())
  const traffic: RunTraffic = { requests: 0, retries: 0, rateLimitHits: 0, rateLimitWaitMs: 0 }
  const run = { id: await mirror.beginRun(job, walk, trigger), traffic }
  result.walk = walk
  observer.onStart(walk)
  try {
    await mirror.assertKey(job)
    const { held, coverage, expectedMissed, untrusted } = await walkList({
      ...options,
      source,
      walk,
      seen: await recallSeenItems(walk, options),
      replace,
      run,
      observer: counting(observer, traffic),
    })
    Object.assign(result, { coverage, expectedMissed, untrusted })
    result.held = held && heldError(job, held, untrusted)
  } catch (error) {
    result.error = signal.aborted ? stopped(signal) : toKnownError(error)
  }
  if (traffic.requests === 0 && isRefusal(result.error)) {
    await mirror.cancelRun(run.id)
    result.walk = null
  } else result.run = { ...(await mirror.finishRun(run, outcomeOf(result))), ...traffic }
  if (!result.error) await mirror.prune(job)
}

/** A token that is held, or a wait that is too long: a run that meets these before its first request has not happened. */
function isRefusal(error: KnownError | null): boolean {
  return error?.code === 'UNAUTHORIZED' || error?.code === 'RATE_LIMITED'
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
      observer.onRequest()
    },
    onThrottled: () => {
      traffic.rateLimitHits++
    },
    onWaited: (ms) => {
      traffic.rateLimitWaitMs += ms
    },
  }
}

export function stopped(signal: AbortSignal): KnownError {
  // A mirror that cannot be used stops all jobs, and is the reason then.
  return signal.reason instanceof Error && signal.reason.name !== 'AbortError'
    ? toKnownError(signal.reason)
    : new InterruptedError('stopped; what is written stays, and the next run goes on from there')
}

function outcomeOf({ error, held }: JobResult): RunOutcome {
  if (!error)
    return { status: 'succeeded', errorCode: held?.code ?? null, errorMessage: held?.message ?? null }
  const status = error instanceof InterruptedError ? 'interrupted' : 'failed'
  return { status, errorCode: error.code, errorMessage: error.message }
}
