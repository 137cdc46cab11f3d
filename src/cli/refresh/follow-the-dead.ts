import type { ScheduledJob, Scheduler } from '../../schedule/scheduler.ts'
import type { Runtime } from '../runtime.ts'
import type { SelectedJob } from '../selection.ts'
import type { Session } from '../session.ts'

interface Following {
  jobs: readonly SelectedJob[]
  /** Beside the jobs. */
  scheduled: readonly ScheduledJob[]
  scheduler: Pick<Scheduler, 'runBetween'>
  runtime: Pick<Runtime, 'sleep'>
  signal: AbortSignal
}

/** How often a worker looks for jobs of those that died. */
const LOOK_EVERY_MS = 10_000

/** Goes on with the jobs of workers that died, on a mirror that several share, until the signal. */
export async function followTheDead(
  { abandonedJobs }: Pick<Session, 'abandonedJobs'>,
  { jobs, scheduled, scheduler, runtime, signal }: Following,
): Promise<void> {
  if (!abandonedJobs) return
  while (!signal.aborted) {
    await runtime.sleep(LOOK_EVERY_MS, signal).catch(() => {})
    if (signal.aborted) return
    // A mirror that cannot be read is reported by the next walk.
    for (const { organizationId, collection } of await abandonedJobs().catch(() => [])) {
      const index = jobs.findIndex(
        ({ organization, job }) => organization.id === organizationId && job.collection.name === collection,
      )
      const one = scheduled[index]
      if (one) scheduler.runBetween(one, one.run)
    }
  }
}
