import type { Config } from '../config/config.ts'
import { type KnownError, MirrorError } from '../errors.ts'
import type { Pings } from '../ping/pings.ts'
import { type JobEvent, type JobOptions, type JobResult, runJob } from '../sync/job.ts'
import type { Job, Observe, WalkPlan } from '../sync/types.ts'
import type { VerifyOptions } from '../sync/verify.ts'
import type { Publisher } from './publisher.ts'
import type { Runtime } from './runtime.ts'
import type { ConfiguredJob } from './selection.ts'
import type { Session } from './session.ts'

/** What is absent is as in a sync. */
export interface HowToRun extends Pick<JobOptions, 'trigger' | 'instead' | 'signal'> {
  plan?: WalkPlan
  waitForOwner?: boolean | undefined
  /** `--accept-removals`: remove what is held back, and what would be. */
  acceptRemovals?: boolean | undefined
}

/** What runs the jobs of a session. */
export interface JobRunner {
  /**
   * Does `work` with these jobs side by side, and waits for all of them. One that fails does not stop the others, unless the mirror itself failed:
   * then all stop. The `api` folder bounds the requests in flight: a job that waits for its rate limit costs the others nothing.
   */
  eachJob<T extends { error: KnownError | null }>(
    jobs: readonly ConfiguredJob[],
    signal: AbortSignal,
    work: (tools: JobTools) => Promise<T>,
  ): Promise<T[]>
  /** Runs these jobs, once. */
  runJobs(jobs: readonly ConfiguredJob[], how: HowToRun): Promise<JobResult[]>
}

/** What a run and a comparison of a list both work with. */
interface JobTools extends Omit<VerifyOptions, 'store' | 'waitForOwner'>, Pick<JobOptions, 'store'> {
  job: ConfiguredJob
}

interface JobRunnerOptions {
  config: Config
  session: Pick<Session, 'store' | 'source' | 'refreshes'>
  observe(job: Job): Observe<JobEvent>
  pings?: Pick<Pings, 'begin'> | null
  publisher?: Pick<Publisher, 'note'> | null
  /** With the clock of the mirror. */
  runtime: Pick<Runtime, 'now' | 'sleep' | 'yieldToEventLoop'>
}

export function createJobRunner(options: JobRunnerOptions): JobRunner {
  const { config, session, observe, pings, publisher, runtime } = options
  const { store, refreshes } = session
  const { maxPasses, resumeWithin } = config
  const syncPlan: WalkPlan = { origin: 'sync', kind: 'full', firstPage: 1, resumeWithin, restart: false }
  const { now, sleep, yieldToEventLoop } = runtime
  // Hundreds of jobs may begin together. Between them signals and probes are answered.
  let lastTurn = Promise.resolve()

  const eachJob: JobRunner['eachJob'] = (jobs, signal, work) => {
    const stop = new AbortController()
    const either = AbortSignal.any([signal, stop.signal])
    return Promise.all(
      jobs.map(async (job) => {
        lastTurn = lastTurn.then(yieldToEventLoop)
        await lastTurn
        const source = () => session.source(job)
        const common = { job, source, store, maxPasses, now, sleep, yieldToEventLoop, signal: either }
        const result = await work({ ...common, observe: observe(job) })
        if (result.error instanceof MirrorError) stop.abort(result.error)
        return result
      }),
    )
  }

  return {
    eachJob,
    async runJobs(jobs, how) {
      const { plan = syncPlan, waitForOwner = false, acceptRemovals: accept = false } = how
      const { trigger, instead, signal } = how
      // A refresh that is due is not a run of a schedule, and comes every few minutes.
      const isDueRefresh = instead === 'due'
      // Before any await: jobs that begin in one turn of the event loop are one run for pings.
      const tellEnd = isDueRefresh ? undefined : pings?.begin()
      // The jobs report errors. For a refresh that is due, the states have just been read.
      if (!isDueRefresh) await refreshes.update().catch(() => {})
      const removals = { ...config.removals, accept }
      const results = await eachJob(jobs, signal, (tools) => {
        const refresh = refreshes.policyOf(tools.job)
        return runJob({ ...tools, plan, trigger, refresh, instead, removals, waitForOwner })
      })
      publisher?.note()
      tellEnd?.(results.find(({ error }) => error instanceof MirrorError)?.error?.message ?? null)
      return results
    },
  }
}
