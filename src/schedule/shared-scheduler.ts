import type { ScheduledJob, Scheduler, SchedulerEvents } from './scheduler.ts'
import { bySchedule, createTicks, LOOP_LATE_MS, type Tick } from './ticks.ts'

// The schedule of workers that share a mirror. Each of them watches the time, the first to see a tick adds its lists to the queue, and
// any of them takes them from there.

/** How a run of a list ended, for the queue: over, or to be tried again by some worker. */
export type RunEnd = { again: true } | { again: false; errorCode: string | null }

/** A list that this worker can read. */
export interface SharedJob<L> extends Omit<ScheduledJob, 'run'> {
  /** What the queue holds of it. */
  list: L
  /** Names its rate budget. */
  budget: string
  /** Reads it, if that is still due. It never rejects. */
  run: () => Promise<RunEnd>
}

/** What the queue has handed out. */
export interface Handed {
  id: string
  /** How often it was handed out before. */
  retryCount: number
}

export interface Queue<L, C extends Handed> {
  /** Adds the lists of a tick. Returns those that still wait or are being read; null: another worker has made this tick. */
  tick(schedule: string, at: number, lists: readonly L[]): Promise<L[] | null>
  add(lists: readonly L[]): Promise<void>
  /** `except`: budgets whose lists stay in the queue. */
  take(most: number, except: readonly string[]): Promise<C[]>
  touch(claims: readonly C[]): Promise<void>
  finish(claim: C, errorCode: string | null): Promise<void>
  giveBack(claim: C): Promise<void>
}

export interface SharedSchedulerOptions<L, C extends Handed> extends SchedulerEvents {
  queue: Queue<L, C>
  /** The job of a claim; undefined for one that is not configured here. */
  jobOf: (claim: C) => SharedJob<L> | undefined
  touchEveryMs: number
  /** The clock that all workers share, and this machine's own; epoch milliseconds. */
  now: () => number
  ownNow: () => number
  sleep: (ms: number, signal: AbortSignal) => Promise<void>
  random: () => number
  /** Ends all loops. Runs that are under way are awaited by `stop`. */
  signal: AbortSignal
  /** The queue could not be used; it is tried again. */
  onQueueError(error: unknown): void
}

/** The most lists that one worker reads at once: most of them wait for their rate limit. */
const MOST_LISTS = 250

/**
 * A worker with ENOUGH_OF_BUDGET lists of one budget takes lists of other budgets first; with MOST_OF_SAME lists in all, it takes no more of
 * such a budget. Else the lists of one budget would take all places, and the requests of the others would go unused.
 */
const ENOUGH_OF_BUDGET = 4
const MOST_OF_SAME = 125

/** The most lists taken at a time, so that workers share what a tick adds. */
const MOST_TAKEN = 8

/**
 * How often a list that is not configured here is given back, since another worker may already have a newer configuration. That takes five
 * minutes; then the list leaves the queue.
 */
const MOST_GIVEN_BACK = 20

const LOOK_AT_QUEUE_EVERY_MS = 1000
const AFTER_FULL_MS = 100
const AFTER_ERROR_MS = 5000

export function startSharedScheduler<L, C extends Handed>(
  jobs: readonly SharedJob<L>[],
  options: SharedSchedulerOptions<L, C>,
): Scheduler {
  const { queue, jobOf, touchEveryMs, now, ownNow, sleep, random, signal } = options
  const claims = new Map<string, C>()
  /** By the name of the job: what this worker is doing for it. */
  const inProgress = new Map<ScheduledJob['name'], Promise<void>>()
  const schedules = bySchedule(jobs)
  let lookedAt = ownNow()
  let isAsking = false

  const pause = (ms: number) => sleep(ms, signal).catch(() => {})

  /** Repeats `turn`, which returns how long to pause after it, until the signal. */
  async function loop(turn: () => Promise<number>): Promise<void> {
    while (!signal.aborted) {
      const ms = await turn().catch((error: unknown) => {
        options.onQueueError(error)
        return AFTER_ERROR_MS
      })
      await pause(ms)
    }
  }

  const ticks = createTicks(schedules, now())
  /** Ticks whose lists are not in the queue yet. */
  let open: Tick<ScheduledLists<L>>[] = []
  async function watchTime(): Promise<number> {
    lookedAt = ownNow()
    open.push(...ticks.come(now()))
    isAsking = true
    try {
      for (const tick of open) await enqueue(tick)
    } finally {
      isAsking = false
    }
    open = []
    return Math.max(1, Math.min(LOOK_AT_QUEUE_EVERY_MS, ticks.quietUntil() - now()))
  }

  async function enqueue({ schedule, at }: Tick<ScheduledLists<L>>): Promise<void> {
    const lists = schedule.jobs.map(({ list }) => list)
    const waiting = new Set(await queue.tick(schedule.name, at, lists))
    for (const { name, list } of schedule.jobs) if (waiting.has(list)) options.onOverlap(name)
  }

  async function takeLists(): Promise<number> {
    const most = Math.min(MOST_TAKEN, MOST_LISTS - claims.size)
    const supplied = suppliedBudgets()
    let taken = await takeSome(most, supplied)
    const more = Math.min(most - taken, MOST_OF_SAME - claims.size)
    if (supplied.length > 0) taken += await takeSome(more, [])
    const isFull = taken > 0 && taken === most
    return (isFull ? AFTER_FULL_MS : LOOK_AT_QUEUE_EVERY_MS) * (0.75 + random() / 2)
  }

  async function takeSome(most: number, except: readonly string[]): Promise<number> {
    const taken = most > 0 ? await queue.take(most, except) : []
    for (const claim of taken) begin(claim)
    return taken.length
  }

  /** The budgets of which this worker has enough lists. */
  function suppliedBudgets(): string[] {
    const counts = new Map<string, number>()
    for (const claim of claims.values()) {
      const budget = jobOf(claim)?.budget
      if (budget !== undefined) counts.set(budget, (counts.get(budget) ?? 0) + 1)
    }
    return [...counts].flatMap(([budget, count]) => (count >= ENOUGH_OF_BUDGET ? [budget] : []))
  }

  function begin(claim: C): void {
    claims.set(claim.id, claim)
    const job = jobOf(claim)
    const isBusy = signal.aborted || (job !== undefined && inProgress.has(job.name))
    const settle = async () => {
      const end: RunEnd =
        isBusy || !job
          ? { again: isBusy || claim.retryCount < MOST_GIVEN_BACK, errorCode: null }
          : await job.run()
      if (end.again) await queue.giveBack(claim)
      else await queue.finish(claim, end.errorCode)
    }
    const ended = guarded(job?.name ?? '', settle).finally(() => claims.delete(claim.id))
    if (job && !isBusy) note(job.name, ended)
    else note(`claim ${claim.id}`, ended)
  }

  function note(name: string, ended: Promise<void>): void {
    inProgress.set(name, ended)
    void ended.finally(() => inProgress.delete(name))
  }

  async function guarded(name: string, task: () => Promise<void>): Promise<void> {
    try {
      await task()
    } catch (error) {
      // The queue hands the list out again once its claim has not been touched for long enough.
      if (!signal.aborted) options.onError(name, error)
    }
  }

  async function addDue(): Promise<void> {
    const due = jobs.filter(({ dueAtStart }) => dueAtStart).map(({ list }) => list)
    while (due.length > 0 && !signal.aborted) {
      const isAdded = await queue.add(due).then(
        () => true,
        (error: unknown) => options.onQueueError(error),
      )
      if (isAdded) return
      await pause(AFTER_ERROR_MS)
    }
  }

  const loops = [
    addDue(),
    loop(watchTime),
    loop(takeLists),
    loop(async () => {
      await queue.touch([...claims.values()])
      return touchEveryMs
    }),
  ]
  let stopping: Promise<void> | null = null

  async function stopAll(): Promise<void> {
    await Promise.allSettled(loops)
    await Promise.allSettled(inProgress.values())
  }

  return {
    isRunning: ({ name }) => inProgress.has(name),
    runBetween(job, task) {
      if (!inProgress.has(job.name) && !signal.aborted) note(job.name, guarded(job.name, task))
    },
    stop() {
      stopping ??= stopAll()
      return stopping
    },
    // While the server is away, the loop waits for it, and so would a new process: that is no reason to restart this one.
    isTicking: (time) => isAsking || time - lookedAt <= LOOP_LATE_MS,
  }
}

type ScheduledLists<L> = ReturnType<typeof bySchedule<SharedJob<L>>>[number]
