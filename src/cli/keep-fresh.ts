import type { ScheduledJob, Scheduler } from '../schedule/scheduler.ts'
import type { WorkerScheduler } from '../schedule/workers.ts'
import { jobKey } from '../text.ts'
import type { RefreshPlan } from './refresh-plan.ts'
import type { Runtime } from './runtime.ts'
import type { SelectedJob } from './selection.ts'

/** A list that `start` reads, and its schedule. */
export interface PlannedJob {
  selected: SelectedJob
  scheduled: ScheduledJob
}

export interface KeepFreshOptions {
  jobs: readonly PlannedJob[]
  /** Refreshes a list if that is still due. Returns whether that failed, and never rejects. */
  read: (selected: SelectedJob) => Promise<{ hasFailed: boolean }>
  plan: Pick<RefreshPlan, 'update' | 'next' | 'budgetOf'>
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
  const { jobs, read, plan, scheduler, runtime, signal } = options
  const { now, sleep } = runtime
  const byKey = new Map(jobs.map((job) => [keyOf(job.selected), job]))
  const failedAt = new Map<string, number>()
  const busy = new Set<string>()
  const everyOf = ({ selected: { organization } }: PlannedJob) =>
    organization.refresh === false ? LOOK_EVERY_MS : organization.refresh.every
  const pause = Math.max(SHORTEST_PAUSE_MS, Math.min(LOOK_EVERY_MS, ...jobs.map(everyOf)))
  let wake = new AbortController()

  /** Whether a list is read already, belongs to no schedule of this process, or could not be begun a moment ago. */
  function isTaken(selected: SelectedJob): boolean {
    const job = byKey.get(keyOf(selected))
    const failed = failedAt.get(keyOf(selected)) ?? Number.NEGATIVE_INFINITY
    // A time in the future was noted before the clock was set back.
    return !job || scheduler.isRunning(job.scheduled) || (failed <= now() && now() - failed < AGAIN_AFTER_MS)
  }

  /** Begins what is due and has room in the share. */
  function look(): void {
    // Of workers that share a mirror one has the budget. Those of an earlier turn may still be at a list of it: both are charged.
    const hasBudget = scheduler.hasBudget ?? (() => true)
    const due = plan.next(isTaken).filter((selected) => {
      const budget = plan.budgetOf(selected)
      return !busy.has(budget) && hasBudget(budget)
    })
    due.forEach(begin)
  }

  function begin(selected: SelectedJob): void {
    const job = byKey.get(keyOf(selected))
    if (!job) return
    const budget = plan.budgetOf(selected)
    busy.add(budget)
    scheduler.runBetween(job.scheduled, async () => {
      try {
        const { hasFailed } = await read(selected)
        if (hasFailed) failedAt.set(keyOf(selected), now())
      } finally {
        busy.delete(budget)
        wake.abort()
      }
    })
    // It runs by now for another reason.
    if (!scheduler.isRunning(job.scheduled)) busy.delete(budget)
  }

  while (!signal.aborted) {
    // A mirror that cannot be read is reported by the next walk.
    await plan.update().catch(() => {})
    look()
    await sleep(pause, AbortSignal.any([signal, wake.signal])).catch(() => {})
    if (wake.signal.aborted) wake = new AbortController()
  }
}

function keyOf({ job }: SelectedJob): string {
  return jobKey(job.organization.id, job.collection.name)
}
