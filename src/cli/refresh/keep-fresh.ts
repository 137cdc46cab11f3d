import type { ScheduledJob, Scheduler } from '../../schedule/scheduler.ts'
import type { Tried } from '../../sync/refresh/due-lists.ts'
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
  plan: Pick<RefreshPlan, 'update' | 'due'>
  /** Those of the lists that no other worker reads, or is about to read; absent: all. */
  takeFree?: (<L extends ListNames>(lists: readonly L[]) => Promise<readonly L[]>) | undefined
  scheduler: Pick<Scheduler, 'isRunning' | 'runBetween'>
  runtime: Pick<Runtime, 'now' | 'sleep'>
  /** Why no refreshes can be begun, once; then null, once they can again. */
  onTrouble: (error: unknown) => void
  signal: AbortSignal
}

interface ListNames {
  organizationId: string
  collection: string
}

/** Other processes may have refreshed a list, and a walk may have read it whole for the first time. */
const LOOK_EVERY_MS = 30_000

const SHORTEST_SLEEP_MS = 1000

/** Refreshes lists whenever that is due, until the signal. A list that is being walked refreshes itself. */
export async function keepFresh(options: KeepFreshOptions): Promise<void> {
  const { jobs, plan, takeFree, scheduler, runtime, onTrouble, signal } = options
  const { now, sleep } = runtime
  const lists = jobs.map((job) => {
    const { organization, collection } = job.selected.job
    const tried: Tried = {}
    return { ...job, organizationId: organization.id, collection: collection.name, tried }
  })
  // A shorter `every` needs a shorter pause: a list's first walk may have ended just now.
  const lookEvery = Math.max(SHORTEST_SLEEP_MS, Math.min(LOOK_EVERY_MS, ...jobs.map(everyOf)))
  let isTroubled = false
  const tell = (error: unknown) => {
    if (isTroubled !== (error !== null)) onTrouble(error)
    isTroubled = error !== null
  }

  /** Begins what is due and has room in the share. Returns how long to sleep then. */
  async function look(): Promise<number> {
    const { due, again } = plan.due(lists.filter(({ scheduled }) => !scheduler.isRunning(scheduled)))
    if (due.length === 0) return again - now()
    const wanted = due.map(({ list, reads }) => ({ ...list, list, reads }))
    const free = takeFree ? await takeFree(wanted) : wanted
    tell(null)
    for (const { list, reads } of free) {
      list.tried[reads] = now()
      scheduler.runBetween(list.scheduled, list.refresh)
    }
    return SHORTEST_SLEEP_MS
  }

  while (!signal.aborted) {
    // A mirror that cannot be read is reported by the next walk.
    await plan.update().catch(() => {})
    const pause = await look().catch((error: unknown) => {
      if (!signal.aborted) tell(error)
      return lookEvery
    })
    await sleep(Math.min(lookEvery, Math.max(SHORTEST_SLEEP_MS, pause)), signal).catch(() => {})
  }
}

function everyOf({ selected }: FreshJob): number {
  const { refresh } = selected.organization
  return refresh === false ? LOOK_EVERY_MS : refresh.every
}
