import type { ScheduledJob, Scheduler } from '../schedule/scheduler.ts'
import type { WorkerScheduler } from '../schedule/workers.ts'
import { listKey, type RefreshPlan } from './refresh-plan.ts'
import type { Runtime } from './runtime.ts'
import type { ConfiguredJob } from './selection.ts'

/** A list that `start` reads by its schedule. */
export interface PlannedJob extends ScheduledJob {
  list: ConfiguredJob
}

export interface KeepFreshOptions {
  jobs: readonly PlannedJob[]
  /** Refreshes a list if that is still due. Returns whether that failed. */
  read: (list: ConfiguredJob) => Promise<boolean>
  plan: Pick<RefreshPlan, 'update' | 'next' | 'budgets'>
  scheduler: Pick<Scheduler, 'isRunning' | 'runBetween'> & Partial<Pick<WorkerScheduler, 'hasBudget'>>
  runtime: Pick<Runtime, 'now' | 'sleep'>
  signal: AbortSignal
}

/** How often to look for lists that are due: no event says so, since other processes read and write, too. Milliseconds. */
const LOOK_EVERY_MS = 5000
const SHORTEST_PAUSE_MS = 1000

/** A list that could not be begun, as where its token is held or another process has it, leaves no trace in the mirror. Milliseconds. */
const AGAIN_AFTER_MS = 60_000

/** Refreshes lists until the signal: of each budget one after another, what is worth most. A list that is being walked refreshes itself. */
export async function keepFresh(options: KeepFreshOptions): Promise<void> {
  const { jobs, read, plan, scheduler, signal } = options
  const { now, sleep } = options.runtime
  const byKey = new Map(jobs.map((job) => [listKey(job.list), job]))
  const failedAt = new Map<PlannedJob, number>()
  const everies = jobs.flatMap(({ list }) => list.organization.refresh || [])
  // In between, what was sent for newest ends may be carried, and older pages have their turn.
  const pause = Math.min(LOOK_EVERY_MS, ...everies.map(({ every }) => Math.max(SHORTEST_PAUSE_MS, every / 2)))

  /** Whether a list is read already, belongs to no schedule of this process, or could not be begun a moment ago. */
  function isTaken(list: ConfiguredJob): boolean {
    const job = byKey.get(listKey(list))
    if (!job || scheduler.isRunning(job)) return true
    const since = now() - (failedAt.get(job) ?? Number.NEGATIVE_INFINITY)
    // A time in the future was noted before the clock was set back.
    return since >= 0 && since < AGAIN_AFTER_MS
  }

  /** Reads what is worth most of a budget, if anything is due. Returns whether it did. */
  async function readNext(budget: string): Promise<boolean> {
    // A mirror that cannot be read is reported by the next walk.
    await plan.update().catch(() => {})
    // Of workers that share a mirror one has the budget. Another one may still be at a list of it: both are charged.
    const isOurs = scheduler.hasBudget?.(budget) ?? true
    const list = isOurs && !signal.aborted ? plan.next(budget, isTaken) : null
    const job = list && byKey.get(listKey(list))
    if (!job) return false
    let hasFailed = true
    await scheduler.runBetween(job, async () => {
      hasFailed = await read(job.list)
    })
    if (hasFailed) failedAt.set(job, now())
    return true
  }

  const keep = async (budget: string) => {
    while (!signal.aborted) if (!(await readNext(budget))) await sleep(pause, signal).catch(() => {})
  }
  await Promise.all(plan.budgets.map(keep))
}
