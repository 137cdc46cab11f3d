import { InterruptedError, KnownError, toKnownError } from '../errors.ts'
import { isDue } from '../schedule/due.ts'
import type { SchedulerEvents } from '../schedule/scheduler.ts'
import { startWorker, type WorkerScheduler } from '../schedule/workers.ts'
import { lastRuns } from '../store/core/runs.ts'
import type { RunOne } from './commands/start.ts'
import type { PlannedJob } from './keep-fresh.ts'
import type { OpenMirror } from './mirror.ts'
import { listKey } from './refresh-plan.ts'
import type { Runtime } from './runtime.ts'
import type { CommandSession } from './session.ts'

// The schedule of a `start` that shares its mirror with other workers.

interface Sharing {
  runtime: Runtime
  planned: readonly PlannedJob[]
  session: CommandSession
  events: SchedulerEvents
  signal: AbortSignal
  runOne: RunOne
}

/** Starts the schedule: the lists of all workers wait in one queue. Throws MirrorError. */
export async function startSharing(
  openQueue: NonNullable<OpenMirror['openQueue']>,
  sharing: Sharing,
): Promise<WorkerScheduler> {
  const { runtime, planned, session, events, signal } = sharing
  const onError = (error: unknown, name = '') => {
    // The signal has ended what waited for a server that is away.
    if (signal.aborted) return
    // A list needs the server before and after its run, too.
    if (name !== '' && !(error instanceof KnownError)) return events.onError(name, error)
    const { code, message } = toKnownError(error)
    session.logger.warn(
      { event: 'queue_trouble', error_code: code, error_message: message },
      'the queue of the workers cannot be used; trying again',
    )
  }
  const queue = await openQueue(onError)
  const jobs = planned.map((job) => {
    const { organization } = job.list
    return {
      ...job,
      key: listKey(job.list),
      budget: session.budgetOf(organization),
      isRefreshed: organization.refresh !== false,
      run: () => runOnce(job, sharing),
    }
  })
  const { now } = session
  return startWorker(jobs, { ...runtime, queue, now, ownNow: runtime.now, signal, onError })
}

/**
 * One run of a list that the queue has handed out, unless it was read since its time, by this entry's former worker or by hand.
 * The lease decides who reads: a list that another process has goes back to the queue until it is free.
 */
async function runOnce(job: PlannedJob, { session, runOne }: Sharing): Promise<'over' | 'again'> {
  const organization = job.list.organization.id
  const collection = job.list.collection.name
  const last = await session.read(lastRuns)
  if (!isDue(last(organization, collection), job, session.now())) return 'over'
  if (!(await session.leases.isFree({ organization, collection }))) return 'again'
  const error = await runOne(job.list)
  return error?.code === 'BUSY' || error instanceof InterruptedError ? 'again' : 'over'
}
