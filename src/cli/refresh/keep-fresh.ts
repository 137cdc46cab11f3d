import type { ScheduledJob, Scheduler } from '../../schedule/scheduler.ts'
import type { Runtime } from '../runtime.ts'
import type { SelectedJob } from '../selection.ts'
import { createPace } from './pace.ts'
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
  plan: Pick<RefreshPlan, 'update' | 'nextAt' | 'useOf'>
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
  const pace = createPace()
  // A shorter `every` needs a shorter pause: a list's first walk may have ended just now.
  const lookEvery = Math.max(SHORTEST_SLEEP_MS, Math.min(LOOK_EVERY_MS, ...jobs.map(everyOf)))
  const dueAt = (job: FreshJob) =>
    plan.nextAt(job.selected, triedAt.get(job) ?? null) ?? Number.POSITIVE_INFINITY
  const withDue = (job: FreshJob) => ({ job, due: dueAt(job) })
  while (!signal.aborted) {
    // A mirror that cannot be read is reported by the next walk.
    await plan.update().catch(() => {})
    let next = Number.POSITIVE_INFINITY
    // The one that has waited longest goes first, or the last ones might never be refreshed.
    for (const { job, due } of jobs.map(withDue).toSorted(byDue)) {
      const { budget, needs } = plan.useOf(job.selected)
      const beginAt = Math.max(due, pace.freeAt(budget))
      if (beginAt > now()) {
        next = Math.min(next, beginAt)
        continue
      }
      pace.begin(budget, needs, now())
      triedAt.set(job, now())
      scheduler.runBetween(job.scheduled, job.refresh)
      next = Math.min(next, dueAt(job))
    }
    await sleep(Math.min(lookEvery, Math.max(SHORTEST_SLEEP_MS, next - now())), signal).catch(() => {})
  }
}

function byDue(a: { due: number }, b: { due: number }): number {
  return a.due < b.due ? -1 : Number(a.due > b.due)
}

function everyOf({ selected }: FreshJob): number {
  const { refresh } = selected.organization
  return refresh === false ? LOOK_EVERY_MS : refresh.every
}
