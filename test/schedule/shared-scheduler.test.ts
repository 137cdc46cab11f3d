import { setTimeout as wait } from 'node:timers/promises'
import { describe, expect, it, onTestFinished } from 'vitest'
import {
  type Handed,
  type Queue,
  type RunEnd,
  type SharedJob,
  startSharedScheduler,
} from '../../src/schedule/shared-scheduler.ts'

// The real queue is tried in test/store/postgres/queue.test.ts; this one shows what a worker does with its answers.

interface Claim extends Handed {
  list: string
}

/** Lists of one budget begin with the same letter. */
const budgetOf = (list: string) => list.slice(0, 1)

const NOON = Date.UTC(2026, 0, 1, 12)

function createScene(lists: readonly string[], run: (list: string) => Promise<RunEnd>, dueAtStart = true) {
  const stop = new AbortController()
  const told: string[] = []
  const touched: string[] = []
  const waiting: Claim[] = []
  let now = NOON
  let broken = 0
  let away: Promise<void> | null = null
  let id = 0
  const fail = () => {
    if (broken > 0 && broken-- > 0) throw new Error('broken')
  }
  const add = (list: string, retryCount = 0) => waiting.push({ id: String(id++), list, retryCount })
  const queue: Queue<string, Claim> = {
    async tick(_schedule, at, ticked) {
      fail()
      told.push(`tick ${at - NOON}`)
      await away
      const left = ticked.filter((list) => waiting.some((claim) => claim.list === list))
      for (const list of ticked) if (!left.includes(list)) add(list)
      return left
    },
    async add(due) {
      fail()
      for (const list of due) add(list)
    },
    async take(most, except) {
      const taken = waiting.filter(({ list }) => !except.includes(budgetOf(list))).slice(0, most)
      for (const claim of taken) waiting.splice(waiting.indexOf(claim), 1)
      return taken
    },
    async touch(claims) {
      touched.push(...claims.map(({ list }) => list))
    },
    async finish({ list }, errorCode) {
      told.push(`finished ${list} ${errorCode}`)
    },
    async giveBack({ list, retryCount }) {
      told.push(`gave back ${list}`)
      if (!stop.signal.aborted) add(list, retryCount + 1)
    },
  }
  const jobs = lists.map(
    (list): SharedJob<string> => ({
      name: list,
      list,
      budget: budgetOf(list),
      expression: '0 * * * *',
      timezone: 'UTC',
      dueAtStart,
      run: () => run(list),
    }),
  )
  const scheduler = startSharedScheduler(jobs, {
    queue,
    jobOf: ({ list }) => jobs.find((job) => job.list === list),
    touchEveryMs: 1,
    now: () => now,
    ownNow: () => now,
    sleep: (_ms, signal) => wait(1, undefined, { signal }),
    random: () => 0.5,
    signal: stop.signal,
    onOverlap: (name) => told.push(`overlap ${name}`),
    onError: (name) => told.push(`error ${name}`),
    onQueueError: () => told.push('queue error'),
  })
  onTestFinished(async () => {
    stop.abort()
    await scheduler.stop()
  })
  const tells = (line: string) => expect.poll(() => told).toContain(line)
  return {
    scheduler,
    jobs,
    told,
    touched,
    add,
    tells,
    stop,
    pass: (ms: number) => {
      now += ms
    },
    breakFor: (times: number) => {
      broken = times
    },
    /** Lets the queue answer no tick until the returned function is called. */
    leave: () => {
      const { promise, resolve } = Promise.withResolvers<void>()
      away = promise
      return resolve
    },
  }
}

const OVER: RunEnd = { again: false, errorCode: null }

describe('a worker', () => {
  it('reads what is due at the start, and again at each tick', async () => {
    const { told, tells, pass } = createScene(['a', 'b'], async (list) =>
      list === 'a' ? OVER : { again: false, errorCode: 'X' },
    )
    await tells('finished a null')
    await tells('finished b X')
    told.length = 0
    pass(3_600_000)

    await tells('tick 3600000')
    await tells('finished a null')
    await tells('finished b X')
    expect(told).toHaveLength(3)
  })

  it('tries again what the queue refused, ticks too', async () => {
    const { tells, told, breakFor, pass } = createScene(['a'], async () => OVER, false)
    breakFor(2)
    pass(3_600_000)

    await tells('finished a null')
    expect(told.filter((line) => line === 'queue error')).toHaveLength(2)
    expect(told.filter((line) => line.startsWith('tick'))).toEqual(['tick 3600000'])
  })

  it('gives a busy list back, and what it reads or refreshes itself', async () => {
    let tries = 0
    const { tells, told, scheduler, jobs, add } = createScene(['a', 'b'], async (list) =>
      list === 'b' || ++tries > 2 ? OVER : { again: true },
    )
    await tells('finished a null')
    expect(told.filter((line) => line === 'gave back a')).toHaveLength(2)
    const refreshed = Promise.withResolvers<void>()
    const [, b] = jobs
    if (!b) throw new Error('no job')
    await expect.poll(() => told).toContain('finished b null')
    told.length = 0
    await wait(5)
    scheduler.runBetween({ ...b, run: async () => {} }, () => refreshed.promise)
    add('b')

    await tells('gave back b')
    refreshed.resolve()
    await tells('finished b null')
  })

  it('refreshes no list that it reads, and none after the signal', async () => {
    const over = Promise.withResolvers<RunEnd>()
    const { scheduler, jobs, touched, tells, stop } = createScene(['a'], () => over.promise)
    const [a] = jobs
    if (!a) throw new Error('no job')
    const refreshed: string[] = []
    const refresh = (when: string) =>
      scheduler.runBetween({ ...a, run: async () => {} }, async () => void refreshed.push(when))
    await expect.poll(() => touched).toContain('a')
    refresh('while it is read')
    over.resolve(OVER)
    await tells('finished a null')
    await expect.poll(() => scheduler.isRunning({ ...a, run: async () => {} })).toBe(false)
    refresh('between')
    stop.abort()
    refresh('after the signal')

    expect(refreshed).toEqual(['between'])
  })

  it('tells the queue what it still reads, and is late once nobody has watched the time for a minute', async () => {
    const over = Promise.withResolvers<RunEnd>()
    const { scheduler, jobs, touched, tells, pass } = createScene(['a'], () => over.promise)
    const [a] = jobs
    if (!a) throw new Error('no job')
    const isRunning = () => scheduler.isRunning({ ...a, run: async () => {} })
    await expect.poll(() => touched).toContain('a')
    expect(isRunning()).toBe(true)
    expect([NOON + 60_000, NOON + 60_001].map(scheduler.isTicking)).toEqual([true, false])
    pass(1)
    await expect.poll(() => scheduler.isTicking(NOON + 60_001)).toBe(true)

    over.resolve(OVER)
    await tells('finished a null')
    await expect.poll(isRunning).toBe(false)
  })

  it('is not late while the server of its queue is away: a new process would wait for it as well', async () => {
    const { scheduler, tells, pass, leave } = createScene(['a'], async () => OVER, false)
    const comeBack = leave()
    pass(3_600_000)
    await tells('tick 3600000')

    expect(scheduler.isTicking(NOON + 2 * 3_600_000)).toBe(true)
    comeBack()
    await tells('finished a null')
    expect(scheduler.isTicking(NOON + 2 * 3_600_000)).toBe(false)
  })

  it('leaves a list that it does not know to others for a while', async () => {
    const { tells, told, add } = createScene(['a'], async () => OVER)
    add('newer')

    await tells('finished newer null')
    expect(told.filter((line) => line === 'gave back newer').length).toBe(20)
  })

  it('takes nothing more after the signal, and ends with its runs', async () => {
    const begun = Promise.withResolvers<void>()
    const ended = Promise.withResolvers<RunEnd>()
    const { scheduler, stop, told, add } = createScene(['a', 'b'], (list) => {
      begun.resolve()
      return list === 'a' ? ended.promise : Promise.resolve(OVER)
    })
    await begun.promise
    stop.abort()
    add('b')
    let isStopped = false
    const stopping = scheduler.stop().then(() => {
      isStopped = true
    })
    await wait(5)
    expect(isStopped).toBe(false)
    ended.resolve({ again: true })
    await stopping

    expect(told).toContain('gave back a')
  })

  it('reads lists of all budgets, though hundreds of one budget wait before the others and none of them ends', async () => {
    const many = Array.from({ length: 300 }, (_one, index) => `a${index}`)
    const inHand = new Set<string>()
    const over = Promise.withResolvers<RunEnd>()
    const { stop } = createScene([...many, 'b', 'c'], (list) => {
      inHand.add(list)
      return over.promise
    })
    await expect.poll(() => inHand.size, { timeout: 20_000 }).toBe(125)
    stop.abort()
    over.resolve(OVER)

    expect(inHand).toContain('b')
    expect(inHand).toContain('c')
  })
})
