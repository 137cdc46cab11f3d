import type { ScheduledJob, Scheduler } from './scheduler.ts'
import { createTicks, LOOP_LATE_MS } from './ticks.ts'

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
  /** Reads it, if that is still due. Returns whether some worker has to try again. */
  run: () => Promise<'over' | 'again'>
}

export type QueueName = 'lists' | 'refreshes'

/** What the queue has handed out to this worker. */
export interface Claim {
  id: string
  key: string
  /** How often it was handed out before. */
  retryCount: number
}

export interface Queue {
  /** Adds entries, unless they wait already, or some worker has them. */
  send(name: QueueName, entries: readonly { key: string; budget: string }[]): Promise<void>
  take(name: QueueName, most: number): Promise<Claim[]>
  /** Says that this worker lives. Returns the ids of the claims that are still its own. */
  touch(name: QueueName, claims: readonly Claim[]): Promise<ReadonlySet<string>>
  finish(name: QueueName, claim: Claim): Promise<void>
  /** Some worker takes it again: in a second, and later the more often this happens. */
  giveBack(name: QueueName, claim: Claim): Promise<void>
}

export interface WorkerOptions {
  queue: Queue
  /** The clock that all workers share, and this machine's own; epoch milliseconds. */
  now: () => number
  ownNow: () => number
  sleep: (ms: number, signal: AbortSignal) => Promise<void>
  random: () => number
  /** Ends all loops. Runs that are under way are awaited by `stop`. */
  signal: AbortSignal
  /** The queue could not be used, which is tried again; or the run of the job of this name rejected. */
  onError(error: unknown, name?: string): void
}

export interface WorkerScheduler extends Scheduler {
  /** Whether this worker keeps the lists of a budget fresh. */
  hasBudget(budget: string): boolean
}

/** The most lists that one worker reads at once: most of them wait for their rate limit. */
const MOST_READ_AT_ONCE = 250

/** The most entries taken at a time, so that workers share what a tick adds. */
const MOST_TAKEN = 8

/**
 * How often a list that is not configured here is given back, since another worker may already have a newer configuration. That takes some
 * minutes; then the list leaves the queue.
 */
const MOST_GIVEN_BACK = 20

const LOOK_IN_QUEUE_MS = 1000
const AFTER_FULL_MS = 100
const AFTER_ERROR_MS = 5000
const TOUCH_EVERY_MS = 2500
const SEND_BUDGETS_EVERY_MS = 60_000

export function startWorker(jobs: readonly WorkerJob[], options: WorkerOptions): WorkerScheduler {
  const { queue, now, ownNow, sleep, random, signal, onError } = options
  const byKey = new Map(jobs.map((job) => [job.key, job]))
  const budgets = [...new Set(jobs.filter((job) => job.isRefreshed).map(({ budget }) => budget))]
  const lists = new Map<string, Claim>()
  const refreshes = new Map<string, Claim>()
  /** By the name of the job: what this worker is doing for it. */
  const inProgress = new Map<string, Promise<void>>()
  let lookedAt = ownNow()
  let isAsking = false

  /** Repeats `turn`, which returns how long to pause after it, until the signal. */
  async function loop(turn: () => Promise<number>): Promise<void> {
    while (!signal.aborted) {
      const ms = await turn().catch((error: unknown) => {
        onError(error)
        return AFTER_ERROR_MS
      })
      await sleep(ms, signal).catch(() => {})
    }
  }

  const ticks = createTicks(jobs, now())
  /** Lists that are due and not in the queue yet. */
  let due = jobs.filter(({ dueAtStart }) => dueAtStart)
  async function watchTime(): Promise<number> {
    lookedAt = ownNow()
    due.push(...ticks.come(now()))
    isAsking = true
    try {
      if (due.length > 0) await queue.send('lists', due)
    } finally {
      isAsking = false
    }
    due = []
    return Math.max(1, Math.min(LOOK_IN_QUEUE_MS, ticks.quietUntil() - now()))
  }

  async function takeLists(): Promise<number> {
    const most = Math.min(MOST_TAKEN, MOST_READ_AT_ONCE - lists.size)
    const taken = most > 0 ? await queue.take('lists', most) : []
    taken.forEach(begin)
    // Workers that began at once do not ask at once.
    return (taken.length === MOST_TAKEN ? AFTER_FULL_MS : LOOK_IN_QUEUE_MS) * (0.75 + random() / 2)
  }

  function begin(claim: Claim): void {
    const job = byKey.get(claim.key)
    const isBusy = signal.aborted || (job !== undefined && inProgress.has(job.name))
    lists.set(claim.id, claim)
    note(job && !isBusy ? job.name : `claim ${claim.id}`, async () => {
      try {
        const isAgain = isBusy || (job ? (await job.run()) === 'again' : claim.retryCount < MOST_GIVEN_BACK)
        await (isAgain ? queue.giveBack('lists', claim) : queue.finish('lists', claim))
      } finally {
        // After an error the queue hands the list out again once its claim has not been touched for long enough.
        lists.delete(claim.id)
      }
    })
  }

  function note(name: string, task: () => Promise<void>): void {
    const ended = task()
      .catch((error: unknown) => {
        if (!signal.aborted) onError(error, name)
      })
      .finally(() => inProgress.delete(name))
    inProgress.set(name, ended)
  }

  /** Again and again: the queue drops entries that are some weeks old. */
  async function sendBudgets(): Promise<number> {
    await queue.send(
      'refreshes',
      budgets.map((budget) => ({ key: budget, budget })),
    )
    return SEND_BUDGETS_EVERY_MS
  }

  /** A worker keeps a budget for as long as it lives. */
  async function takeBudgets(): Promise<number> {
    for (const claim of await queue.take('refreshes', MOST_TAKEN)) {
      if (budgets.includes(claim.key)) refreshes.set(claim.id, claim)
      else await queue.giveBack('refreshes', claim)
    }
    return LOOK_IN_QUEUE_MS * (0.75 + random() / 2)
  }

  async function touch(): Promise<number> {
    if (lists.size > 0) await queue.touch('lists', [...lists.values()])
    const claims = [...refreshes.values()]
    if (claims.length > 0) {
      const own = await queue.touch('refreshes', claims)
      for (const { id } of claims) if (!own.has(id)) refreshes.delete(id)
    }
    return TOUCH_EVERY_MS
  }

  const loops = [watchTime, takeLists, touch, ...(budgets.length > 0 ? [sendBudgets, takeBudgets] : [])].map(
    loop,
  )

  return {
    isRunning: ({ name }) => inProgress.has(name),
    async runBetween(job, task) {
      if (inProgress.has(job.name) || signal.aborted) return
      note(job.name, task)
      await inProgress.get(job.name)
    },
    hasBudget: (budget) => [...refreshes.values()].some(({ key }) => key === budget),
    async stop() {
      await Promise.allSettled(loops)
      const givenBack = [...refreshes.values()].map((claim) => queue.giveBack('refreshes', claim))
      await Promise.allSettled([...inProgress.values(), ...givenBack])
    },
    // While the server is away, the loop waits for it, and so would a new process: that is no reason to restart this one.
    isTicking: (time) => isAsking || time - lookedAt <= LOOP_LATE_MS,
  }
}
