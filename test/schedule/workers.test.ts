import { setTimeout as wait } from 'node:timers/promises'
import { describe, expect, it, onTestFinished } from 'vitest'
import {
  type Claim,
  type Queue,
  type QueueName,
  startWorker,
  type WorkerJob,
} from '../../src/schedule/workers.ts'

// What a worker does with what the queue answers. The real queue: test/store/postgres/queue.test.ts.

type Run = WorkerJob['run']

const NOON = Date.UTC(2026, 0, 1, 12)
const HOUR = 3_600_000

/** A queue as pg-boss keeps it, of any number of workers, and what it was told. */
function createQueue() {
  const waiting: Record<QueueName, Claim[]> = { lists: [], refreshes: [] }
  const active: Record<QueueName, Claim[]> = { lists: [], refreshes: [] }
  const told: string[] = []
  /** How often it breaks, and until when it answers nothing. */
  const fault = { times: 0, until: Promise.resolve() }
  let count = 0
  const add = (name: QueueName, key: string, retryCount = 0) =>
    waiting[name].push({ id: String(count++), key, retryCount })
  const letGo = (name: QueueName, { id }: Claim) => {
    active[name] = active[name].filter((one) => one.id !== id)
  }
  const queue: Queue = {
    async send(name, entries) {
      if (fault.times > 0 && fault.times-- > 0) throw new Error('broken')
      told.push(`sent ${name}`)
      await fault.until
      const known = new Set([...active[name], ...waiting[name]].map(({ key }) => key))
      for (const { key } of entries) if (!known.has(key)) add(name, key)
    },
    async take(name, most) {
      const taken = waiting[name].splice(0, most)
      active[name].push(...taken)
      return taken
    },
    async touch(name, claims) {
      told.push(...claims.map(({ key }) => `touched ${key}`))
      return new Set(active[name].map(({ id }) => id))
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
  return { queue, active, told, fault, add }
}

type Options = Partial<Pick<WorkerJob, 'dueAtStart' | 'isRefreshed'>> & {
  shared?: ReturnType<typeof createQueue>
}

/** A worker that reads these lists, each with a budget of its own. */
function createScene(names: string, run: (list: string) => ReturnType<Run>, options: Options = {}) {
  const { shared = createQueue(), dueAtStart = true, isRefreshed = false } = options
  const { queue, told } = shared
  const stop = new AbortController()
  let now = NOON
  const jobOf = (name: string): WorkerJob => ({
    name,
    key: name,
    budget: name,
    isRefreshed,
    expression: '0 * * * *',
    timezone: 'UTC',
    dueAtStart,
    run: () => run(name),
  })
  const worker = startWorker(names.split('').map(jobOf), {
    queue,
    now: () => now,
    ownNow: () => now,
    sleep: (_ms, signal) => wait(1, undefined, { signal }),
    random: () => 0.5,
    signal: stop.signal,
    onError: () => told.push('error'),
  })
  const end = async () => {
    stop.abort()
    await worker.stop()
  }
  onTestFinished(end)
  return {
    ...shared,
    worker,
    stop,
    end,
    tells: (line: string) => expect.poll(() => told).toContain(line),
    count: (line: string) => told.filter((one) => one === line).length,
    isFree: (list: string) => expect.poll(() => worker.isRunning(jobOf(list))).toBe(false),
    between: (list: string, task: () => Promise<void>) => void worker.runBetween(jobOf(list), task),
    pass(ms: number) {
      now += ms
    },
  }
}

const over = async () => 'over' as const

describe('a worker', () => {
  it('reads what is due at the start, and again at each tick', async () => {
    const { told, tells, pass } = createScene('ab', over)
    for (const hour of [0, HOUR]) {
      pass(hour)
      await tells('finished a')
      await tells('finished b')
      expect(told.splice(0).filter((line) => line.startsWith('finished'))).toHaveLength(2)
    }
  })

  it('sends again what the queue refused', async () => {
    const { tells, count, fault, pass } = createScene('a', over, { dueAtStart: false })
    fault.times = 2
    pass(HOUR)

    await tells('finished a')
    expect(count('error')).toBe(2)
  })

  it('gives a busy list back, and what it reads or refreshes itself', async () => {
    let tries = 0
    const again = async (list: string) => (list === 'b' || ++tries > 2 ? 'over' : 'again')
    const { tells, told, count, between, isFree, add } = createScene('ab', again)
    await tells('finished a')
    expect(count('gave back a')).toBe(2)
    const refreshed = Promise.withResolvers<void>()
    await tells('finished b')
    told.length = 0
    await isFree('b')
    between('b', () => refreshed.promise)
    add('lists', 'b')

    await tells('gave back b')
    refreshed.resolve()
    await tells('finished b')
  })

  it('refreshes no list that it reads, and none after the signal', async () => {
    const ended = Promise.withResolvers<'over'>()
    const { between, isFree, tells, stop } = createScene('a', () => ended.promise)
    const refreshed: string[] = []
    const refresh = (when: string) => between('a', async () => void refreshed.push(when))
    await tells('touched a')
    refresh('while it is read')
    ended.resolve('over')
    await tells('finished a')
    await isFree('a')
    refresh('between')
    stop.abort()
    refresh('after the signal')

    expect(refreshed).toEqual(['between'])
  })

  it('is late once nobody has watched the time for a minute, but not while the server of its queue is away', async () => {
    const { worker, tells, pass, fault } = createScene('a', over)
    await tells('finished a')
    expect([NOON + 60_000, NOON + 60_001].map(worker.isTicking)).toEqual([true, false])
    const away = Promise.withResolvers<void>()
    fault.until = away.promise
    pass(HOUR)
    await expect.poll(() => worker.isTicking(NOON + 2 * HOUR)).toBe(true)
    away.resolve()
    await expect.poll(() => worker.isTicking(NOON + 2 * HOUR)).toBe(false)
  })

  it('leaves a list that it does not know to others for a while', async () => {
    const { tells, count, add } = createScene('a', over)
    add('lists', 'newer')

    await tells('finished newer')
    expect(count('gave back newer')).toBe(20)
  })

  it('takes nothing more after the signal, and ends with its runs', async () => {
    const ended = Promise.withResolvers<'again'>()
    const { end, isFree, tells, told, add } = createScene('a', () => ended.promise)
    await tells('touched a')
    let isStopped = false
    const stopping = end().then(() => {
      isStopped = true
    })
    add('lists', 'b')
    await wait(5)
    expect(isStopped).toBe(false)
    ended.resolve('again')
    await stopping
    await isFree('a')

    expect(told).toContain('gave back a')
    expect(told).not.toContain('gave back b')
  })
})

it('the budgets of refreshes are kept by one worker each, by another one when it stops, and again once the queue has lost them', async () => {
  const shared = createQueue()
  const options = { shared, isRefreshed: true, dueAtStart: false }
  const [first, second] = [createScene('ab', over, options), createScene('ab', over, options)]
  const has = () => [first, second].map(({ worker }) => ['a', 'b'].filter(worker.hasBudget).join(''))
  await expect.poll(has).toEqual(['ab', ''])
  await first.end()
  await expect.poll(() => has()[1]).toBe('ab')
  // Another worker has the one by now, and nobody the other.
  shared.active.refreshes = [{ id: 'new', key: 'a', retryCount: 1 }]

  await expect.poll(() => has()[1]).toBe('b')
  expect(shared.active.refreshes.map(({ key }) => key)).toEqual(['a', 'b'])
})
