import { onSchedule } from './cron.ts'

export interface ScheduledJob {
  name: string
  /** Has been checked. */
  expression: string
  timezone: string
  /** Whether it also runs once when the scheduler starts. */
  dueAtStart: boolean
  /** One run of the job; it never rejects. */
  run: () => Promise<void>
}

export interface SchedulerEvents {
  /** The job's time came while it still runs: skipped. */
  onOverlap(name: string): void
  /** The job broke its promise never to reject. */
  onError(name: string, error: unknown): void
}

export interface Scheduler {
  /** Resolves when all runs that are in progress now have ended. */
  running(): Promise<unknown>
  /** No further run begins; resolves when those in progress have ended. Further calls hand back the same promise. */
  stop(): Promise<void>
}

/**
 * Runs every job when its time comes, never two runs of one job at once, and at once those that are due. Jobs do not
 * wait for each other.
 */
export function startScheduler(jobs: readonly ScheduledJob[], events: SchedulerEvents): Scheduler {
  const inProgress = new Map<ScheduledJob, Promise<void>>()
  let stopping: Promise<void> | null = null

  function begin(job: ScheduledJob): void {
    if (inProgress.has(job)) {
      events.onOverlap(job.name)
      return
    }
    const run = runGuarded(job, events).finally(() => inProgress.delete(job))
    inProgress.set(job, run)
  }

  const firings = groupsOf(jobs).map((group) =>
    onSchedule(group[0].expression, group[0].timezone, () => group.forEach(begin)),
  )
  for (const job of jobs) if (job.dueAtStart) begin(job)

  function running(): Promise<unknown> {
    return Promise.allSettled(inProgress.values())
  }

  async function stopAll(): Promise<void> {
    for (const firing of firings) firing.stop()
    await running()
  }

  return {
    running,
    stop() {
      stopping ??= stopAll()
      return stopping
    },
  }
}

/** By schedule, so that each has one timer: 500 organizations wake the process as often as one does. */
function groupsOf(jobs: readonly ScheduledJob[]) {
  const groups = Map.groupBy(jobs, ({ expression, timezone }) => `${timezone} ${expression}`)
  return [...groups.values()] as [ScheduledJob, ...ScheduledJob[]][]
}

async function runGuarded(job: ScheduledJob, events: SchedulerEvents): Promise<void> {
  try {
    await job.run()
  } catch (error) {
    events.onError(job.name, error)
  }
}
