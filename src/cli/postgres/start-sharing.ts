import { InterruptedError, KnownError, toKnownError } from '../../errors.ts'
import { isDue } from '../../schedule/due.ts'
import type { ScheduledJob, SchedulerEvents } from '../../schedule/scheduler.ts'
import { startWorker, type WorkerScheduler } from '../../schedule/workers.ts'
import { lastRuns } from '../../store/core/runs.ts'
import type { JobResult } from '../../sync/job.ts'
import { jobKey } from '../../text.ts'
import type { PlannedJob } from '../keep-fresh.ts'
import type { OpenMirror } from '../mirror.ts'
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

/** Starts the schedule of a mirror that several workers share: its lists wait in one queue. Throws MirrorError. */
export async function startSharing(
  openQueue: NonNullable<OpenMirror['openQueue']>,
  options: SharedStart,
): Promise<WorkerScheduler> {
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
  const queue = await openQueue(onQueueError)
  const jobs = planned.map(({ selected, scheduled }) => {
    const { organization, job } = selected
    return {
      ...scheduled,
      key: jobKey(organization.id, job.collection.name),
      budget: budgetOf(organization),
      isRefreshed: organization.refresh !== false,
      run: () => runOnce(selected, scheduled, options),
    }
  })
  const worker = startWorker(jobs, {
    // A list needs the server before and after its run, too.
    onError: (name, error) =>
      error instanceof KnownError ? onQueueError(error) : events.onError(name, error),
    queue,
    now,
    ownNow: runtime.now,
    sleep: runtime.sleep,
    random: runtime.random,
    signal,
    onQueueError,
  })
  return {
    ...worker,
    async stop() {
      await worker.stop()
      await queue.close()
    },
  }
}

/**
 * One run of a list that the queue has handed out, unless it was read since its time, by this entry's former worker or by hand.
 * The lease decides who reads: a list that another process has goes back to the queue until it is free.
 */
async function runOnce(
  selected: SelectedJob,
  schedule: Pick<ScheduledJob, 'expression' | 'timezone'>,
  { session, signal, onResult }: SharedStart,
): Promise<'over' | 'again'> {
  const { organization, job } = selected
  const names = { organization: organization.id, collection: job.collection.name }
  const last = await session.run(() => lastRuns(names))
  const now = session.now()
  if (!isDue(last, schedule, now)) return 'over'
  if (!(await session.leases.isFree(names))) return 'again'
  const [result] = await session.runJobs([selected], { trigger: 'schedule', signal })
  if (!result) return 'over'
  onResult(result)
  const { error } = result
  return error !== null && (error.code === 'BUSY' || error instanceof InterruptedError) ? 'again' : 'over'
}
