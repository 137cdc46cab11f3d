import type { ScheduledJob, Scheduler } from '../schedule/scheduler.ts'
import type { PlannedList, RefreshPlan } from './refresh-plan.ts'
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
  plan: Pick<RefreshPlan, 'update' | 'due'>
  /** Returns the lists that no other worker reads, or is about to read; absent: all. */
  takeFree?:
    | (<L extends { organizationId: string; collection: string }>(lists: readonly L[]) => Promise<L[]>)
    | undefined
  scheduler: Pick<Scheduler, 'isRunning' | 'runBetween'>
  runtime: Pick<Runtime, 'now' | 'sleep'>
  /** Called with the error when refreshes cannot start, and with null when they can again. */
  onTrouble: (error: unknown) => void
  signal: AbortSignal
}

/** How often to look for lists that are due: no event says so, since the price falls and other processes read and write. Milliseconds. */
const LOOK_FOR_DUE_EVERY_MS = 5000
const SHORTEST_PAUSE_MS = 1000

/** Refreshes lists whenever that is due, until the signal. A list that is being walked refreshes itself. */
export async function keepFresh(options: KeepFreshOptions): Promise<void> {
  const { jobs, read, plan, takeFree, scheduler, runtime, onTrouble, signal } = options
  const { now, sleep } = runtime
  const lists = jobs.map((job) => ({ ...job, failed: {} as PlannedList['failed'] }))
  const everyOf = ({ selected: { organization } }: PlannedJob) =>
    organization.refresh === false ? LOOK_FOR_DUE_EVERY_MS : organization.refresh.every
  const pause = Math.max(SHORTEST_PAUSE_MS, Math.min(LOOK_FOR_DUE_EVERY_MS, ...jobs.map(everyOf)))
  let isTroubled = false
  const tell = (error: unknown) => {
    if (isTroubled !== (error !== null)) onTrouble(error)
    isTroubled = error !== null
  }

  /** Begins what is due and has room in the share. */
  async function look(): Promise<void> {
    const due = plan
      .due(lists.map((list) => ({ ...list, isRead: scheduler.isRunning(list.scheduled) })))
      .map(({ list, reads }) => {
        const { organization, collection } = list.selected.job
        return { list, reads, organizationId: organization.id, collection: collection.name }
      })
    if (due.length === 0) return
    const free = takeFree ? await takeFree(due) : due
    tell(null)
    for (const { list, reads } of free) {
      scheduler.runBetween(list.scheduled, async () => {
        const { hasFailed } = await read(list.selected)
        if (hasFailed) list.failed[reads] = now()
      })
    }
  }

  while (!signal.aborted) {
    // A mirror that cannot be read is reported by the next walk.
    await plan.update().catch(() => {})
    await look().catch((error: unknown) => {
      if (!signal.aborted) tell(error)
    })
    await sleep(pause, signal).catch(() => {})
  }
}
