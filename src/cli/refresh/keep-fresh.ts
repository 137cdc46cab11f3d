import type { ScheduledJob, Scheduler } from '../../schedule/scheduler.ts'
import { endOfPause, type SharePause } from '../../sync/refresh-turns.ts'
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
  plan: Pick<RefreshPlan, 'update' | 'nextAt' | 'budgetOf' | 'useOf' | 'take' | 'mostTaken'>
  scheduler: Pick<Scheduler, 'isRunning' | 'runBetween'>
  runtime: Pick<Runtime, 'now' | 'sleep'>
  /** Why no refreshes can be begun, once; then null, once they can again. */
  onTrouble: (error: unknown) => void
  signal: AbortSignal
}

/** Other processes may have refreshed a list, and a walk may have read it whole for the first time. */
const LOOK_EVERY_MS = 30_000

const SHORTEST_SLEEP_MS = 1000

/** A list that is being read, here or elsewhere, is looked at again after this part of its interval, or a minute. */
const BUSY_SHARE = 0.1
const LONGEST_BUSY_MS = 60_000

/** After it has taken as many as it may at once; other processes take theirs meanwhile. */
const AFTER_FULL_MS = 100

/** Refreshes lists whenever that is due, until the signal. A list that is being walked refreshes itself. */
export async function keepFresh(options: KeepFreshOptions): Promise<void> {
  const { jobs, plan, scheduler, runtime, onTrouble, signal } = options
  const { now, sleep } = runtime
  let isTroubled = false
  const triedAt = new Map<FreshJob, number>()
  /** By budget, and of lists that are being read. */
  const pauses = new Map<string | FreshJob, SharePause>()
  const pausedUntil = (paused: string | FreshJob) => endOfPause(pauses.get(paused), now())
  // A shorter `every` needs a shorter pause: a list's first walk may have ended just now.
  const lookEvery = Math.max(SHORTEST_SLEEP_MS, Math.min(LOOK_EVERY_MS, ...jobs.map(everyOf)))
  const dueAt = (job: FreshJob) => {
    const due = plan.nextAt(job.selected, triedAt.get(job) ?? null) ?? Number.POSITIVE_INFINITY
    return Math.max(due, pausedUntil(job))
  }
  const tell = (error: unknown) => {
    if (isTroubled !== (error !== null)) onTrouble(error)
    isTroubled = error !== null
  }
  const withDue = (job: FreshJob) => ({ job, due: dueAt(job) })

  /** Begins what is due and has room in the share. Returns how long to sleep then. */
  async function look(): Promise<number> {
    // The one that has waited longest goes first, or the last ones might never be refreshed.
    const byTime = jobs.map(withDue).toSorted(byDue)
    const due = byTime
      .filter(({ job, due: at }) => at <= now() && pausedUntil(plan.budgetOf(job.selected)) <= now())
      .map(({ job }) => ({ job, ...plan.useOf(job.selected) }))
    const { busy = [], idle = [] } = Object.groupBy(due, ({ job }) =>
      scheduler.isRunning(job.scheduled) ? 'busy' : 'idle',
    )
    const { taken, others, freeAt } = await plan.take(idle)
    if (idle.length > 0) tell(null)
    for (const [budget, until] of freeAt) pauses.set(budget, { notedAt: now(), until })
    for (const { job, interval } of [...busy, ...others]) {
      const pause = Math.max(SHORTEST_SLEEP_MS, Math.min(LONGEST_BUSY_MS, interval * BUSY_SHARE))
      pauses.set(job, { notedAt: now(), until: now() + pause })
    }
    for (const { job } of taken) {
      triedAt.set(job, now())
      scheduler.runBetween(job.scheduled, job.refresh)
    }
    if (taken.length >= plan.mostTaken) return AFTER_FULL_MS
    let next = Number.POSITIVE_INFINITY
    for (const one of byTime) {
      if (one.due >= next) break
      const again = one.due <= now() ? dueAt(one.job) : one.due
      next = Math.min(next, Math.max(again, pausedUntil(plan.budgetOf(one.job.selected))))
    }
    return Math.min(lookEvery, Math.max(SHORTEST_SLEEP_MS, next - now()))
  }

  while (!signal.aborted) {
    // A mirror that cannot be read is reported by the next walk.
    await plan.update().catch(() => {})
    const pause = await look().catch((error: unknown) => {
      if (!signal.aborted) tell(error)
      return lookEvery
    })
    await sleep(pause, signal).catch(() => {})
  }
}

function byDue(a: { due: number }, b: { due: number }): number {
  return a.due < b.due ? -1 : Number(a.due > b.due)
}

function everyOf({ selected }: FreshJob): number {
  const { refresh } = selected.organization
  return refresh === false ? LOOK_EVERY_MS : refresh.every
}
