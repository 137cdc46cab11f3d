import { hasMissedWake, onSchedule } from './cron.ts'

export interface ScheduledJob {
  name: string
  /** Checked already. */
  expression: string
  timezone: string
  /** Whether it also runs once when the scheduler starts. */
  dueAtStart: boolean
  /** One run of the job; it never rejects. */
  run: () => Promise<void>
}

export interface SchedulerEvents {
  /** The job's time came while it still runs, and is skipped. */
  onOverlap(name: string): void
  /** The job rejected all the same. */
  onError(name: string, error: unknown): void
}

export interface Scheduler {
  /** Runs `task` unless the job is running. If its time comes meanwhile, the job runs afterwards. */
  runBetween(job: ScheduledJob, task: () => Promise<void>): void
  /** Begins no further run; resolves when those in progress have ended. Later calls return the same promise. */
  stop(): Promise<void>
  /**
   * False if a wake-up is missing for more than LATE_MS: a schedule is dead, or the process was blocked or asleep and has
   * not caught up. `now` is in epoch milliseconds.
   */
  isTicking(now: number): boolean
}

/** What a job does: its own run, or a task between two runs, after which it may have to run. */
interface Progress {
  ended: Promise<void>
  isTask: boolean
  runsNext: boolean
}
/** A wake-up may be late by so much, as on a machine under load. */
const LATE_MS = 60_000

/**
 * Runs every job when its time comes, and those that are due at once; never two runs of one job at the same time. Jobs
 * do not wait for each other.
 */
export function startScheduler(jobs: readonly ScheduledJob[], events: SchedulerEvents): Scheduler {
  const inProgress = new Map<ScheduledJob, Progress>()
  let stopping: Promise<void> | null = null

  function begin(job: ScheduledJob, task: (() => Promise<void>) | null = null): void {
    const ended = runGuarded(job.name, task ?? job.run, events).finally(() => {
      const { runsNext } = progress
      inProgress.delete(job)
      if (runsNext && !stopping) begin(job)
    })
    const progress = { ended, isTask: task !== null, runsNext: false }
    inProgress.set(job, progress)
  }

  function fire(job: ScheduledJob): void {
    const current = inProgress.get(job)
    if (!current) begin(job)
    else if (current.isTask) current.runsNext = true
    else events.onOverlap(job.name)
  }

  const groups = groupsOf(jobs).map((group) => {
    const [{ expression, timezone }] = group
    let lastWake = Number.POSITIVE_INFINITY
    const stop = onSchedule(
      expression,
      timezone,
      () => group.forEach(fire),
      (time) => {
        lastWake = time
      },
    )
    return { stop, isTicking: (now: number) => !hasMissedWake(expression, lastWake, now - LATE_MS) }
  })
  for (const job of jobs) if (job.dueAtStart) begin(job)

  async function stopAll(): Promise<void> {
    for (const { stop } of groups) stop()
    await Promise.allSettled([...inProgress.values()].map(({ ended }) => ended))
  }

  return {
    runBetween(job, task) {
      if (!inProgress.has(job) && !stopping) begin(job, task)
    },
    stop() {
      stopping ??= stopAll()
      return stopping
    },
    isTicking: (now) => groups.every((group) => group.isTicking(now)),
  }
}

/** By schedule, so that each has one timer: 500 organizations wake the process no more often than one. */
function groupsOf(jobs: readonly ScheduledJob[]) {
  const groups = Map.groupBy(jobs, ({ expression, timezone }) => `${timezone} ${expression}`)
  return [...groups.values()] as [ScheduledJob, ...ScheduledJob[]][]
}

async function runGuarded(name: string, run: () => Promise<void>, events: SchedulerEvents): Promise<void> {
  try {
    await run()
  } catch (error) {
    events.onError(name, error)
  }
}
