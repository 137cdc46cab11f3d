import { createTicks, LOOP_LATE_MS } from './ticks.ts'

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
  /** Runs `task` to its end, however that is, unless the job is busy. A tick meanwhile runs the job afterwards. */
  runBetween(job: ScheduledJob, task: () => Promise<void>): Promise<void>
  /** Begins no further run; resolves when those in progress have ended. */
  stop(): Promise<void>
  /**
   * False if the loop that watches the time is late by more than a minute: the process is blocked, or was asleep and has not
   * caught up. `now` is in epoch milliseconds.
   */
  isTicking(now: number): boolean
}

/** The clock is checked at least this often: a timer does not notice sleep or a clock that was set. */
const LOOK_AT_CLOCK_EVERY_MS = 30_000

/**
 * Runs every job when its time comes, and at the start those that are due; never two runs of one job at the same time. Jobs do not wait for
 * each other. Ticks missed during sleep or a block count as one.
 */
export function startScheduler(
  jobs: readonly ScheduledJob[],
  events: SchedulerEvents,
  { now, sleep }: { now: () => number; sleep: (ms: number, signal: AbortSignal) => Promise<void> },
): Scheduler {
  const inProgress = new Map<ScheduledJob, Promise<unknown>>()
  /** Those that are doing a task between two runs, and whether a run follows. */
  const between = new Map<ScheduledJob, boolean>()
  const stop = new AbortController()

  function begin(job: ScheduledJob, task: () => Promise<unknown>): void {
    const end = () => {
      inProgress.delete(job)
      const runsNext = between.get(job)
      between.delete(job)
      if (runsNext) fire(job)
    }
    inProgress.set(
      job,
      Promise.try(task)
        .catch((error: unknown) => events.onError(job.name, error))
        .finally(end),
    )
  }

  function fire(job: ScheduledJob): void {
    if (stop.signal.aborted) return
    if (between.has(job)) between.set(job, true)
    else if (inProgress.has(job)) events.onOverlap(job.name)
    else begin(job, job.run)
  }

  let lookedAt = now()
  const ticks = createTicks(jobs, lookedAt)

  async function watchTime(): Promise<void> {
    while (!stop.signal.aborted) {
      lookedAt = now()
      ticks.come(lookedAt).forEach(fire)
      const pause = Math.max(1, Math.min(LOOK_AT_CLOCK_EVERY_MS, ticks.quietUntil() - now()))
      await sleep(pause, stop.signal).catch(() => {})
    }
  }

  const watching = watchTime()
  jobs.filter(({ dueAtStart }) => dueAtStart).forEach(fire)

  return {
    isRunning: (job) => inProgress.has(job),
    async runBetween(job, task) {
      if (inProgress.has(job) || stop.signal.aborted) return
      between.set(job, false)
      begin(job, task)
      await inProgress.get(job)
    },
    async stop() {
      stop.abort()
      await Promise.all([watching, ...inProgress.values()])
    },
    isTicking: (time) => time - lookedAt <= LOOK_AT_CLOCK_EVERY_MS + LOOP_LATE_MS,
  }
}
