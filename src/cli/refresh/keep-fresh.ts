import type { ScheduledJob, Scheduler } from '../../schedule/scheduler.ts'
import type { Runtime } from '../runtime.ts'
import type { SelectedJob } from '../selection.ts'
import type { RefreshPlan } from './refresh-plan.ts'

/** A list that `start` keeps fresh between its full walks. */
export interface FreshJob {
  selected: SelectedJob
  scheduled: ScheduledJob
  /** Refreshes the list, if that is still due. It never rejects. */
  refresh: () => Promise<void>
}

export interface KeepFreshOptions {
  jobs: readonly FreshJob[]
  plan: Pick<RefreshPlan, 'update' | 'nextAt'>
  scheduler: Pick<Scheduler, 'runBetween'>
  runtime: Pick<Runtime, 'now' | 'sleep'>
  signal: AbortSignal
}

/** Other processes may have refreshed a list, and a walk may have read it whole for the first time. */
const LOOK_EVERY_MS = 30_000

const SHORTEST_SLEEP_MS = 1000

/** Refreshes lists whenever that is due, until the signal. A list that is being walked refreshes itself. */
export async function keepFresh({ jobs, plan, scheduler, runtime, signal }: KeepFreshOptions): Promise<void> {
  const { now, sleep } = runtime
  const triedAt = new Map<FreshJob, number>()
  // A list that is refreshed more often is also looked at more often: its first walk may have ended just now.
  const lookEvery = Math.max(SHORTEST_SLEEP_MS, Math.min(LOOK_EVERY_MS, ...jobs.map(everyOf)))
  const nextAt = (job: FreshJob) =>
    plan.nextAt(job.selected, triedAt.get(job) ?? null) ?? Number.POSITIVE_INFINITY
  while (!signal.aborted) {
    // A mirror that cannot be read is reported by the next walk.
    await plan.update().catch(() => {})
    for (const job of jobs.filter((one) => nextAt(one) <= now())) {
      triedAt.set(job, now())
      scheduler.runBetween(job.scheduled, job.refresh)
    }
    const next = Math.min(...jobs.map(nextAt)) - now()
    await sleep(Math.min(lookEvery, Math.max(SHORTEST_SLEEP_MS, next)), signal).catch(() => {})
  }
}

function everyOf({ selected }: FreshJob): number {
  const { refresh } = selected.organization
  return refresh === false ? LOOK_EVERY_MS : refresh.every
}
