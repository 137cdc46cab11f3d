import { bySchedule, createTicks } from './ticks.ts'

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
  isRunning(job: ScheduledJob): boolean
  /** Runs `task` unless the job is running. If its time comes meanwhile, the job runs afterwards. */
  runBetween(job: ScheduledJob, task: () => Promise<void>): void
  /** Begins no further run; resolves when those in progress have ended. Later calls return the same promise. */
  stop(): Promise<void>
  /**
   * False if the loop that watches the time is late by more than a minute: the process is blocked, or was asleep and has not
   * caught up. `now` is in epoch milliseconds.
   */
  isTicking(now: number): boolean
}

/** A clock: epoch milliseconds, and a sleep that rejects once the signal is aborted. */
export interface Timing {
  now: () => number
  sleep: (ms: number, signal: AbortSignal) => Promise<void>
}

/** What a job does: its own run, or a task between two runs, after which it may have to run. */
interface Progress {
  ended: Promise<void>
  isTask: boolean
  runsNext: boolean
}

/** The time is looked at so often, since a timer does not notice that the machine slept, or that its clock was set. */
const LOOK_AT_CLOCK_EVERY_MS = 30_000
/** A look may be late by so much, as on a machine under load. */
const LATE_MS = 60_000

/**
 * Runs every job when its time comes, and those that are due at once; never two runs of one job at the same time. Jobs
 * do not wait for each other. All times that came while the process was blocked or the machine slept are one time. When the
 * clock was set back, times that it shows again count again.
 */
export function startScheduler(
  jobs: readonly ScheduledJob[],
  events: SchedulerEvents,
  { now, sleep }: Timing,
): Scheduler {
  const inProgress = new Map<ScheduledJob, Progress>()
  const stopped = new AbortController()
  let stopping: Promise<void> | null = null

  function begin(job: ScheduledJob, task: (() => Promise<void>) | null = null): void {
    const end = () => {
      inProgress.delete(job)
      if (progress.runsNext && !stopping) begin(job)
    }
    const ended = Promise.try(task ?? job.run)
      .catch((error: unknown) => events.onError(job.name, error))
      .finally(end)
    const progress = { ended, isTask: task !== null, runsNext: false }
    inProgress.set(job, progress)
  }

  function fire(job: ScheduledJob): void {
    const current = inProgress.get(job)
    if (!current) begin(job)
    else if (current.isTask) current.runsNext = true
    else events.onOverlap(job.name)
  }

  const schedules = bySchedule(jobs)
  let lookedAt = now()
  const ticks = createTicks(schedules, lookedAt)

  async function watchTime(): Promise<void> {
    while (!stopped.signal.aborted) {
      const time = now()
      lookedAt = time
      for (const { schedule } of ticks.come(time)) schedule.jobs.forEach(fire)
      const pause = Math.max(1, Math.min(LOOK_AT_CLOCK_EVERY_MS, ticks.quietUntil() - now()))
      await sleep(pause, stopped.signal).catch(() => {})
    }
  }

  const watching = schedules.length > 0 ? watchTime() : Promise.resolve()
  for (const job of jobs) if (job.dueAtStart) begin(job)

  async function stopAll(): Promise<void> {
    stopped.abort()
    await watching
    await Promise.allSettled([...inProgress.values()].map(({ ended }) => ended))
  }

  return {
    isRunning: (job) => inProgress.has(job),
    runBetween(job, task) {
      if (!inProgress.has(job) && !stopping) begin(job, task)
    },
    stop() {
      stopping ??= stopAll()
      return stopping
    },
    isTicking: (time) => schedules.length === 0 || time - lookedAt <= LOOK_AT_CLOCK_EVERY_MS + LATE_MS,
  }
}
