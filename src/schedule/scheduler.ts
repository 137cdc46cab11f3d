import { bySchedule, createTicks, LOOP_LATE_MS } from './ticks.ts'

export interface ScheduledJob {
  name: string
  /** A valid cron expression. */
  expression: string
  timezone: string
  /** Whether it also runs once when the scheduler starts. */
  dueAtStart: boolean
  /** One run of the job; it never rejects. */
  run: () => Promise<unknown>
}

export interface SchedulerEvents {
  /** A tick came while the job was running, and is skipped. */
  onOverlap(name: string): void
  /** `run` rejected although it must not. */
  onError(name: string, error: unknown): void
}

export interface Scheduler {
  isRunning(job: ScheduledJob): boolean
  /** Runs `task` unless the job is busy. A tick meanwhile runs the job afterwards. */
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

/** What a job is doing: its own run, or a task between two runs. */
interface Progress {
  ended: Promise<unknown>
  isTask: boolean
  runsNext: boolean
}

/** The clock is checked at least this often: a timer does not notice sleep or a clock that was set. */
const LOOK_AT_CLOCK_EVERY_MS = 30_000

/**
 * Runs every job when its time comes, and at the start those that are due; never two runs of one job at the same time. Jobs
 * do not wait for each other. Ticks missed during sleep or a block count as one. After the clock was set back, repeated ticks fire
 * again.
 */
export function startScheduler(
  jobs: readonly ScheduledJob[],
  events: SchedulerEvents,
  { now, sleep }: Timing,
): Scheduler {
  const inProgress = new Map<ScheduledJob, Progress>()
  const stop = new AbortController()
  let stopping: Promise<void> | null = null

  function begin(job: ScheduledJob, task: (() => Promise<unknown>) | null = null): void {
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
    while (!stop.signal.aborted) {
      const time = now()
      lookedAt = time
      for (const { schedule } of ticks.come(time)) schedule.jobs.forEach(fire)
      const pause = Math.max(1, Math.min(LOOK_AT_CLOCK_EVERY_MS, ticks.quietUntil() - now()))
      await sleep(pause, stop.signal).catch(() => {})
    }
  }

  const watching = schedules.length > 0 ? watchTime() : Promise.resolve()
  for (const job of jobs) if (job.dueAtStart) begin(job)

  async function stopAll(): Promise<void> {
    stop.abort()
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
    isTicking: (time) => schedules.length === 0 || time - lookedAt <= LOOK_AT_CLOCK_EVERY_MS + LOOP_LATE_MS,
  }
}
