import type { Config } from '../config/config.ts'
import { type KnownError, MirrorError } from '../errors.ts'
import type { Pings } from '../ping/pings.ts'
import { type JobEvent, type JobOptions, type JobResult, runJob } from '../sync/job.ts'
import type { Job, Observe, WalkPlan } from '../sync/types.ts'
import type { Publisher } from './publisher.ts'
import type { Runtime } from './runtime.ts'
import type { ConfiguredJob } from './selection.ts'
import type { Session } from './session.ts'

export type RunJobs = (jobs: readonly ConfiguredJob[], how: HowToRun) => Promise<JobResult[]>

/** What is absent is as in a sync. */
export interface HowToRun extends Pick<JobOptions, 'trigger' | 'instead' | 'signal'> {
  plan?: WalkPlan
  waitForOwner?: boolean | undefined
  /** `--accept-removals`: remove what is held back, and what would be. */
  acceptRemovals?: boolean | undefined
}

/** The walk of a sync, by schedule or by hand. */
export function syncPlan({ resumeWithin }: Config): WalkPlan {
  return { origin: 'sync', kind: 'full', firstPage: 1, resumeWithin, restart: false }
}

/**
 * Runs tasks concurrently and waits for all of them. A failed one does not stop the others, unless the mirror itself failed: then all
 * stop. The `api` folder bounds the requests in flight: a job that waits for its rate limit costs the others nothing.
 */
export function runConcurrently<T extends { error: KnownError | null }>(
  tasks: readonly ((signal: AbortSignal) => Promise<T>)[],
  signal: AbortSignal,
): Promise<T[]> {
  const stop = new AbortController()
  const either = AbortSignal.any([signal, stop.signal])
  return Promise.all(
    tasks.map(async (task) => {
      const result = await task(either)
      if (result.error instanceof MirrorError) stop.abort(result.error)
      return result
    }),
  )
}

interface RunnerOptions {
  config: Config
  session: Pick<Session, 'store' | 'source' | 'refreshes'>
  observe(job: Job): Observe<JobEvent>
  pings?: Pick<Pings, 'begin'> | null
  publisher?: Pick<Publisher, 'note'> | null
  /** With the clock of the mirror. */
  runtime: Pick<Runtime, 'now' | 'sleep' | 'yieldToEventLoop'>
}

/** Returns the function that runs jobs in a session. */
export function createRunner(options: RunnerOptions): RunJobs {
  const { config, session, observe, pings, publisher, runtime } = options
  const { store, refreshes } = session
  const { now, sleep, yieldToEventLoop } = runtime
  // Hundreds of jobs may begin together. Between them signals and probes are answered.
  let lastTurn = Promise.resolve()
  return async (jobs, how) => {
    const { plan = syncPlan(config), waitForOwner = false, acceptRemovals: accept = false } = how
    const { trigger, instead, signal } = how
    // A refresh that is due is not a run of a schedule, and comes every few minutes.
    const isDueRefresh = instead === 'due'
    // Before any await: jobs that begin in one turn of the event loop are one run for pings.
    const tellEnd = isDueRefresh ? undefined : pings?.begin()
    // The jobs report errors. For a refresh that is due, the states have just been read.
    if (!isDueRefresh) await refreshes.update().catch(() => {})
    const tasks = jobs.map((job) => async (stop: AbortSignal) => {
      lastTurn = lastTurn.then(yieldToEventLoop)
      await lastTurn
      return runJob({
        job,
        plan,
        trigger,
        source: () => session.source(job),
        store,
        refresh: refreshes.policyOf(job),
        instead,
        maxPasses: config.maxPasses,
        removals: { ...config.removals, accept },
        waitForOwner,
        now,
        sleep,
        yieldToEventLoop,
        observe: observe(job),
        signal: stop,
      })
    })
    const results = await runConcurrently(tasks, signal)
    publisher?.note()
    tellEnd?.(results.find(({ error }) => error instanceof MirrorError)?.error?.message ?? null)
    return results
  }
}
