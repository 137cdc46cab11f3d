import { setTimeout as wait } from 'node:timers/promises'
import { describe, expect, it, onTestFinished } from 'vitest'
import {
  type Claim,
  type Queue,
  type QueueName,
  startWorker,
  type WorkerJob,
} from '../../src/schedule/workers.ts'

// The real queue is tried in test/store/postgres/queue.test.ts; this one shows what a worker does with its answers.

type Run = WorkerJob['run']

/** Lists of one budget begin with the same letter. */
const budgetOf = (list: string) => list.slice(0, 1)

const NOON = Date.UTC(2026, 0, 1, 12)
const HOUR = 3_600_000

/** A queue as pg-boss keeps it, of any number of workers. */
function createQueue() {
  const waiting: Record<QueueName, Claim[]> = { lists: [], refreshes: [] }
  const active: Record<QueueName, string[]> = { lists: [], refreshes: [] }
  const told: string[] = []
  const touched: string[] = []
  let [broken, count] = [0, 0]
  let away: Promise<void> | null = null
  const add = (name: QueueName, key: string, retryCount = 0) =>
    waiting[name].push({ id: String(count++), key, retryCount })
  const letGo = (name: QueueName, { key }: Claim) =>
    active[name].splice(active[name].indexOf(key), active[name].includes(key) ? 1 : 0)
  const queue: Queue = {
    async send(name, entries) {
      if (broken > 0 && broken-- > 0) throw new Error('broken')
      told.push(`sent ${name}`)
      await away
      const known = new Set([...active[name], ...waiting[name].map(({ key }) => key)])
      for (const { key } of entries) if (!known.has(key)) add(name, key)
    },
    async take(name, most) {
      const taken = waiting[name].slice(0, most)
      for (const claim of taken) {
        waiting[name].splice(waiting[name].indexOf(claim), 1)
        active[name].push(claim.key)
      }
      return taken
    },
    async touch(name, claims) {
      touched.push(...claims.map(({ key }) => key))
      return new Set(claims.filter(({ key }) => active[name].includes(key)).map(({ id }) => id))
    },
    async finish(name, claim) {
      letGo(name, claim)
      told.push(`finished ${claim.key}`)
    },
    async giveBack(name, claim) {
      letGo(name, claim)
      told.push(`gave back ${claim.key}`)
      add(name, claim.key, claim.retryCount + 1)
    },
  }
  return {
    queue,
    told,
    touched,
    add,
    /** Has nothing any more. */
    lose(name: QueueName) {
      active[name] = []
    },
    breakFor(times: number) {
      broken = times
    },
    /** Lets the queue take nothing until the returned function is called. */
    leave() {
      const { promise, resolve } = Promise.withResolvers<void>()
      away = promise
      return resolve
    },
  }
}

type Options = Partial<Pick<WorkerJob, 'dueAtStart' | 'isRefreshed'>> & {
  shared?: ReturnType<typeof createQueue>
}

function createScene(
  lists: readonly string[],
  run: (list: string) => ReturnType<Run>,
  options: Options = {},
) {
  const { shared = createQueue(), dueAtStart = true, isRefreshed = false } = options
  const { queue, told } = shared
  const stop = new AbortController()
  let now = NOON
  const jobs = lists.map(
    (list): WorkerJob => ({
      name: list,
      key: list,
      budget: budgetOf(list),
      isRefreshed,
      expression: '0 * * * *',
      timezone: 'UTC',
      dueAtStart,
      run: () => run(list),
    }),
  )
  const worker = startWorker(jobs, {
    queue,
    now: () => now,
    ownNow: () => now,
    sleep: (_ms, signal) => wait(1, undefined, { signal }),
    random: () => 0.5,
    signal: stop.signal,
    onError: () => told.push('error'),
  })
  onTestFinished(async () => {
    stop.abort()
    await worker.stop()
  })
  return {
    ...shared,
    worker,
    stop,
    jobOf: (list: string) => ({
      ...(jobs.find(({ name }) => name === list) as WorkerJob),
      run: async () => {},
    }),
    tells: (line: string) => expect.poll(() => told).toContain(line),
    pass(ms: number) {
      now += ms
    },
  }
}

const over = async () => 'over' as const

describe('a worker', () => {
  it('reads what is due at the start, and again at each tick', async () => {
    const { told, tells, pass } = createScene(['a', 'b'], over)
    await tells('finished a')
    await tells('finished b')
    told.length = 0
    pass(HOUR)

    await tells('finished a')
    await tells('finished b')
    expect(told).toHaveLength(3)
  })

  it('sends again what the queue refused', async () => {
    const { tells, told, breakFor, pass } = createScene(['a'], over, { dueAtStart: false })
    breakFor(2)
    pass(HOUR)

    await tells('finished a')
    expect(told.filter((line) => line === 'error')).toHaveLength(2)
  })

  it('gives a busy list back, and what it reads or refreshes itself', async () => {
    let tries = 0
    const { tells, told, worker, jobOf, add } = createScene(['a', 'b'], async (list) =>
      list === 'b' || ++tries > 2 ? 'over' : 'again',
    )
    await tells('finished a')
    expect(told.filter((line) => line === 'gave back a')).toHaveLength(2)
    const refreshed = Promise.withResolvers<void>()
    await tells('finished b')
    told.length = 0
    await expect.poll(() => worker.isRunning(jobOf('b'))).toBe(false)
    worker.runBetween(jobOf('b'), () => refreshed.promise)
    add('lists', 'b')

    await tells('gave back b')
    refreshed.resolve()
    await tells('finished b')
  })

  it('refreshes no list that it reads, and none after the signal', async () => {
    const ended = Promise.withResolvers<'over'>()
    const { worker, jobOf, touched, tells, stop } = createScene(['a'], () => ended.promise)
    const refreshed: string[] = []
    const refresh = (when: string) => worker.runBetween(jobOf('a'), async () => void refreshed.push(when))
    await expect.poll(() => touched).toContain('a')
    refresh('while it is read')
    ended.resolve('over')
    await tells('finished a')
    await expect.poll(() => worker.isRunning(jobOf('a'))).toBe(false)
    refresh('between')
    stop.abort()
    refresh('after the signal')

    expect(refreshed).toEqual(['between'])
  })

  it('is late once nobody has watched the time for a minute, but not while the server of its queue is away', async () => {
    const { worker, tells, pass, leave } = createScene(['a'], over)
    await tells('finished a')
    expect([NOON + 60_000, NOON + 60_001].map(worker.isTicking)).toEqual([true, false])
    const comeBack = leave()
    pass(HOUR)
    await expect.poll(() => worker.isTicking(NOON + 2 * HOUR)).toBe(true)
    comeBack()
    await expect.poll(() => worker.isTicking(NOON + 2 * HOUR)).toBe(false)
  })

  it('leaves a list that it does not know to others for a while', async () => {
    const { tells, told, add } = createScene(['a'], over)
    add('lists', 'newer')

    await tells('finished newer')
    expect(told.filter((line) => line === 'gave back newer').length).toBe(20)
  })

  it('takes nothing more after the signal, and ends with its runs', async () => {
    const begun = Promise.withResolvers<void>()
    const ended = Promise.withResolvers<'again'>()
    const { worker, stop, told, add } = createScene(['a'], () => {
      begun.resolve()
      return ended.promise
    })
    await begun.promise
    stop.abort()
    add('lists', 'b')
    let isStopped = false
    const stopping = worker.stop().then(() => {
      isStopped = true
    })
    await wait(5)
    expect(isStopped).toBe(false)
    ended.resolve('again')
    await stopping

    expect(told).toContain('gave back a')
    expect(told).not.toContain('gave back b')
  })
})

describe('the budgets of refreshes', () => {
  it('are kept by one worker each, and by another one when it stops, or its claims are gone', async () => {
    const shared = createQueue()
    const options = { shared, isRefreshed: true, dueAtStart: false }
    const scenes = [createScene(['a', 'b'], over, options), createScene(['a', 'b'], over, options)]
    const [first, second] = scenes as [(typeof scenes)[0], (typeof scenes)[0]]
    const has = () => scenes.map(({ worker }) => ['a', 'b'].filter(worker.hasBudget).join(''))
    await expect.poll(has).toEqual(['ab', ''])
    first.stop.abort()
    await first.worker.stop()
    await expect.poll(() => has()[1]).toBe('ab')
    shared.lose('refreshes')

    await expect.poll(() => second.worker.hasBudget('a')).toBe(false)
  })
})
