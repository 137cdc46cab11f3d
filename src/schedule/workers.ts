import type { ScheduledJob, Scheduler, SchedulerEvents } from './scheduler.ts'
import { bySchedule, createTicks, LOOP_LATE_MS } from './ticks.ts'

// The schedule of workers that share a mirror. Each of them watches the time and puts the lists of a tick into the queue, which has each once; any
// of them takes them from there, and reads one only if that is still due. Budgets are handed out likewise: who has one keeps its lists fresh.

/** A list that this worker can read. */
export interface WorkerJob extends Omit<ScheduledJob, 'run'> {
  /** Names it in the queue. */
  key: string
  /** Names its rate budget. */
  budget: string
  /** Whether its lists are refreshed. */
  isRefreshed: boolean
  /** Reads it, if that is still due. Returns whether some worker has to try again. It never rejects. */
  run: () => Promise<'over' | 'again'>
}

/** What the queue has handed out. */
export interface Handed {
  id: string
  key: string
  /** How often it was handed out before. */
  retryCount: number
}

type QueueName = 'lists' | 'refreshes'

export interface Queue {
  send(name: QueueName, entries: readonly { key: string; budget: string }[]): Promise<void>
  /** `except`: budgets whose entries stay in the queue. */
  take(name: QueueName, most: number, except?: readonly string[]): Promise<Handed[]>
  touch(name: QueueName, claims: readonly Handed[]): Promise<void>
  finish(name: QueueName, claim: Handed): Promise<void>
  giveBack(name: QueueName, claim: Handed): Promise<void>
}

export interface WorkerOptions extends Pick<SchedulerEvents, 'onError'> {
  queue: Queue
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

export interface WorkerScheduler extends Scheduler {
  /** Whether this worker keeps the lists of a budget fresh. */
  hasBudget(budget: string): boolean
}

/** The most lists that one worker reads at once: most of them wait for their rate limit. */
const MOST_LISTS = 250

/**
 * A worker with ENOUGH_OF_BUDGET lists of one budget takes lists of other budgets first; with MOST_OF_SAME lists in all, it takes no more of
 * such a budget. Else the lists of one budget would take all places, and the requests of the others would go unused.
 */
const ENOUGH_OF_BUDGET = 4
const MOST_OF_SAME = 125

/** The most entries taken at a time, so that workers share what a tick adds. */
const MOST_TAKEN = 8

/**
 * How often a list that is not configured here is given back, since another worker may already have a newer configuration. That takes some
 * minutes; then the list leaves the queue.
 */
const MOST_GIVEN_BACK = 20

const LOOK_EVERY_MS = 1000
const AFTER_FULL_MS = 100
const AFTER_ERROR_MS = 5000
const TOUCH_EVERY_MS = 2500

/** A worker keeps a budget for so long, then any may take it: those that begin later get their share of them. */
const TURN_MS = 60_000

export function startWorker(jobs: readonly WorkerJob[], options: WorkerOptions): WorkerScheduler {
  const { queue, now, ownNow, sleep, random, signal } = options
  const byKey = new Map(jobs.map((job) => [job.key, job]))
  const claims = new Map<string, Handed>()
  const budgets = new Map<string, { claim: Handed; until: number }>()
  /** By the name of the job: what this worker is doing for it. */
  const inProgress = new Map<string, Promise<void>>()
  let lookedAt = ownNow()
  let isAsking = false

  /** Repeats `turn`, which returns how long to pause after it, until the signal. */
  async function loop(turn: () => Promise<number>): Promise<void> {
    while (!signal.aborted) {
      const ms = await turn().catch((error: unknown) => {
        options.onQueueError(error)
        return AFTER_ERROR_MS
      })
      await sleep(ms, signal).catch(() => {})
    }
  }

  const ticks = createTicks(bySchedule(jobs), now())
  /** Lists that are due and not in the queue yet. */
  let due = jobs.filter(({ dueAtStart }) => dueAtStart)
  async function watchTime(): Promise<number> {
    lookedAt = ownNow()
    due.push(...ticks.come(now()).flatMap(({ schedule }) => schedule.jobs))
    isAsking = true
    try {
      if (due.length > 0) await queue.send('lists', due)
    } finally {
      isAsking = false
    }
    due = []
    return Math.max(1, Math.min(LOOK_EVERY_MS, ticks.quietUntil() - now()))
  }

  async function takeLists(): Promise<number> {
    const most = Math.min(MOST_TAKEN, MOST_LISTS - claims.size)
    const supplied = suppliedBudgets()
    let taken = await takeSome(most, supplied)
    const more = Math.min(most - taken, MOST_OF_SAME - claims.size)
    if (supplied.length > 0) taken += await takeSome(more, [])
    return pauseAfter(taken > 0 && taken === most)
  }

  async function takeSome(most: number, except: readonly string[]): Promise<number> {
    const taken = most > 0 ? await queue.take('lists', most, except) : []
    for (const claim of taken) begin(claim)
    return taken.length
  }

  /** Workers that began at once do not ask at once. */
  function pauseAfter(isFull: boolean): number {
    return (isFull ? AFTER_FULL_MS : LOOK_EVERY_MS) * (0.75 + random() / 2)
  }

  /** The budgets of which this worker has enough lists. */
  function suppliedBudgets(): string[] {
    const counts = new Map<string, number>()
    for (const { key } of claims.values()) {
      const budget = byKey.get(key)?.budget
      if (budget !== undefined) counts.set(budget, (counts.get(budget) ?? 0) + 1)
    }
    return [...counts].flatMap(([budget, count]) => (count >= ENOUGH_OF_BUDGET ? [budget] : []))
  }

  function begin(claim: Handed): void {
    claims.set(claim.id, claim)
    const job = byKey.get(claim.key)
    const isBusy = signal.aborted || (job !== undefined && inProgress.has(job.name))
    const settle = async () => {
      const isAgain = isBusy || (job ? (await job.run()) === 'again' : claim.retryCount < MOST_GIVEN_BACK)
      await (isAgain ? queue.giveBack('lists', claim) : queue.finish('lists', claim))
    }
    const ended = guarded(job?.name ?? '', settle).finally(() => claims.delete(claim.id))
    note(job && !isBusy ? job.name : `claim ${claim.id}`, ended)
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

  const refreshed = [...new Set(jobs.filter((job) => job.isRefreshed).map(({ budget }) => budget))]
  const entries = refreshed.map((budget) => ({ key: budget, budget }))
  let sentAt = Number.NEGATIVE_INFINITY
  async function takeBudgets(): Promise<number> {
    const time = ownNow()
    // A clock that was set back ends the turn, too.
    const over = [...budgets].filter(([, { until }]) => time >= until || until > time + TURN_MS)
    for (const [budget, { claim }] of over) {
      budgets.delete(budget)
      await queue.finish('refreshes', claim)
    }
    if (over.length > 0 || Math.abs(time - sentAt) >= TURN_MS) {
      await queue.send('refreshes', entries)
      sentAt = time
    }
    // The others have the first chance.
    if (over.length > 0) return LOOK_EVERY_MS
    const taken = await queue.take('refreshes', MOST_TAKEN)
    for (const claim of taken) budgets.set(claim.key, { claim, until: time + TURN_MS })
    return pauseAfter(taken.length === MOST_TAKEN)
  }

  const loops = [
    loop(watchTime),
    loop(takeLists),
    loop(async () => {
      await queue.touch('lists', [...claims.values()])
      await queue.touch(
        'refreshes',
        [...budgets.values()].map(({ claim }) => claim),
      )
      return TOUCH_EVERY_MS
    }),
    ...(entries.length > 0 ? [loop(takeBudgets)] : []),
  ]
  let stopping: Promise<void> | null = null

  async function stopAll(): Promise<void> {
    await Promise.allSettled(loops)
    await Promise.allSettled([
      ...inProgress.values(),
      ...[...budgets.values()].map(({ claim }) => queue.giveBack('refreshes', claim)),
    ])
  }

  return {
    isRunning: ({ name }) => inProgress.has(name),
    runBetween(job, task) {
      if (!inProgress.has(job.name) && !signal.aborted) note(job.name, guarded(job.name, task))
    },
    hasBudget: (budget) => budgets.has(budget),
    stop() {
      stopping ??= stopAll()
      return stopping
    },
    // While the server is away, the loop waits for it, and so would a new process: that is no reason to restart this one.
    isTicking: (time) => isAsking || time - lookedAt <= LOOP_LATE_MS,
  }
}
