import { InterruptedError, KnownError, toKnownError } from '../errors.ts'
import { isDue } from '../schedule/due.ts'
import type { SchedulerEvents } from '../schedule/scheduler.ts'
import { startWorker, type WorkerScheduler } from '../schedule/workers.ts'
import { lastRuns } from '../store/core/runs.ts'
import type { JobResult } from '../sync/job.ts'
import { jobKey } from '../text.ts'
import type { PlannedJob } from './keep-fresh.ts'
import type { OpenMirror } from './mirror.ts'
import type { Runtime } from './runtime.ts'
import type { CommandSession } from './session.ts'

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
  const onError = (error: unknown, name = '') => {
    // The signal has ended what waited for a server that is away.
    if (signal.aborted) return
    // A list needs the server before and after its run, too.
    if (name !== '' && !(error instanceof KnownError)) events.onError(name, error)
    else {
      const { code, message } = toKnownError(error)
      session.logger.warn(
        { event: 'queue_trouble', error_code: code, error_message: message },
        'the queue of the workers cannot be used; trying again',
      )
    }
  }
  const queue = await openQueue(onError)
  const jobs = planned.map(({ selected: { organization, job }, ...plan }) => ({
    ...plan.scheduled,
    key: jobKey(organization.id, job.collection.name),
    budget: session.budgetOf(organization),
    isRefreshed: organization.refresh !== false,
    run: () => runOnce({ selected: { organization, job }, ...plan }, options),
  }))
  const { now } = session
  const worker = startWorker(jobs, { ...runtime, queue, now, ownNow: runtime.now, signal, onError })
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
  { selected, scheduled }: PlannedJob,
  { session, signal, onResult }: SharedStart,
): Promise<'over' | 'again'> {
  const { organization, collection } = selected.job
  const names = { organization: organization.id, collection: collection.name }
  const last = await session.run(lastRuns)
  if (!isDue(last(organization.id, collection.name), scheduled, session.now())) return 'over'
  if (!(await session.leases.isFree(names))) return 'again'
  const [result] = await session.runJobs([selected], { trigger: 'schedule', signal })
  if (!result) return 'over'
  onResult(result)
  const { error } = result
  return error !== null && (error.code === 'BUSY' || error instanceof InterruptedError) ? 'again' : 'over'
}
