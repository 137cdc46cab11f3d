import { InterruptedError, KnownError, toKnownError } from '../../errors.ts'
import { beganAhead, isDue } from '../../schedule/due.ts'
import type { ScheduledJob, Scheduler, SchedulerEvents } from '../../schedule/scheduler.ts'
import { type RunEnd, type SharedJob, startSharedScheduler } from '../../schedule/shared-scheduler.ts'
import { isOwned } from '../../store/core/leases.ts'
import { lastRuns } from '../../store/core/runs.ts'
import { TOUCH_EVERY_MS } from '../../store/postgres/queue/boss.ts'
import type { ListNames, ListQueue, QueuedList } from '../../store/postgres/queue/queue.ts'
import type { JobResult } from '../../sync/job.ts'
import { jobKey } from '../../text.ts'
import type { PlannedJob } from '../keep-fresh.ts'
import type { Sharing } from '../mirror.ts'
import type { Runtime } from '../runtime.ts'
import type { SelectedJob } from '../selection.ts'
import type { CommandSession } from '../session.ts'

export interface SharedStart {
  runtime: Runtime
  planned: readonly PlannedJob[]
  session: CommandSession
  events: SchedulerEvents
  signal: AbortSignal
  onResult: (result: JobResult) => void
}

/** How often a worker looks for lists of those that died. */
const RESCUE_EVERY_MS = 2500

/** Starts the schedule of a mirror that several workers share: its lists wait in one queue. Throws MirrorError. */
export async function startSharing(sharing: Sharing, options: SharedStart): Promise<Scheduler> {
  const { runtime, planned, session, events, signal } = options
  const { logger, now, budgetOf } = session
  const onQueueError = (error: unknown) => {
    // The signal has ended what waited for a server that is away.
    if (signal.aborted) return
    const { code, message } = toKnownError(error)
    logger.warn(
      { event: 'queue_trouble', error_code: code, error_message: message },
      'the queue of the workers cannot be used; trying again',
    )
  }
  const queue = await sharing.openQueue(onQueueError)
  const shared = planned.map(({ selected, scheduled }): SharedJob<QueuedList> => {
    const { organization, job } = selected
    const budget = budgetOf(organization)
    const list = { organizationId: organization.id, collection: job.collection.name, budget }
    return { ...scheduled, list, budget, run: () => runOnce(selected, scheduled, options) }
  })
  const byList = new Map(shared.map((job) => [queueKey(job.list), job]))
  const scheduler = startSharedScheduler(shared, {
    ...events,
    // A list needs the server before and after its run, too.
    onError: (name, error) => {
      if (error instanceof KnownError) onQueueError(error)
      else events.onError(name, error)
    },
    queue,
    jobOf: (claim) => byList.get(queueKey(claim)),
    touchEveryMs: TOUCH_EVERY_MS,
    now,
    ownNow: runtime.now,
    sleep: runtime.sleep,
    random: runtime.random,
    signal,
    onQueueError,
  })
  const rescuing = rescueLists(sharing, queue, byList, { runtime, signal, onQueueError })
  return {
    ...scheduler,
    async stop() {
      await Promise.all([rescuing, scheduler.stop()])
      await queue.close()
    },
  }
}

function queueKey({ organizationId, collection }: ListNames): string {
  return jobKey(organizationId, collection)
}

const OVER: RunEnd = { again: false, errorCode: null }

/**
 * One run of a list that the queue has handed out, unless it was read since its time, by this entry's former worker or by hand.
 * The lease decides who reads: a list that another process has goes back to the queue until it is free.
 */
async function runOnce(
  selected: SelectedJob,
  schedule: Pick<ScheduledJob, 'expression' | 'timezone'>,
  { session, signal, onResult }: SharedStart,
): Promise<RunEnd> {
  const { organization, job } = selected
  const names = { organization: organization.id, collection: job.collection.name }
  const last = await session.run(() => lastRuns(names))
  const now = session.now()
  if (!beganAhead(last, now) && !isDue(last, schedule, now)) return OVER
  if (await session.run(() => isOwned(names))) return { again: true }
  const [result] = await session.runJobs([selected], { trigger: 'schedule', signal })
  if (!result) return OVER
  onResult(result)
  const { error } = result
  const again = error !== null && (error.code === 'BUSY' || error instanceof InterruptedError)
  return again ? { again } : { again: false, errorCode: error?.code ?? null }
}

interface Rescue {
  runtime: Pick<Runtime, 'sleep'>
  signal: AbortSignal
  onQueueError: (error: unknown) => void
}

/**
 * Puts the lists of workers that died back into the queue. Their leases show the death; a worker that
 * died before it had the lease is known by a claim that it no longer touches.
 */
async function rescueLists(
  { keepAlive }: Sharing,
  queue: Pick<ListQueue, 'rescue'>,
  byList: ReadonlyMap<string, SharedJob<QueuedList>>,
  { runtime, signal, onQueueError }: Rescue,
): Promise<void> {
  while (!signal.aborted) {
    await runtime.sleep(RESCUE_EVERY_MS, signal).catch(() => {})
    if (signal.aborted) return
    try {
      await keepAlive()
      await queue.rescue((left) => byList.get(queueKey(left))?.list)
    } catch (error) {
      onQueueError(error)
    }
  }
}
