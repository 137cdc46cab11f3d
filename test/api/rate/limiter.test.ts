import pLimit, { type LimitFunction } from 'p-limit'
import { describe, expect, it } from 'vitest'
import type { RateRules } from '../../../src/api/rate/budget.ts'
import type { RateHeaders } from '../../../src/api/rate/headers.ts'
import { type Answer, createRateLimiter, type RateLimiter } from '../../../src/api/rate/limiter.ts'
import { JobError } from '../../../src/errors.ts'
import { createObserver } from '../helpers/observer.ts'
import { createSteppedClock, type SteppedClock, settle } from '../helpers/stepped-clock.ts'
import { createTestBudgetStore, type TestBudgetStore } from '../helpers/stores.ts'

const MINUTE = 60_000

/** How long a request counts at our ceiling, if it left at the beginning of half a second. */
const OUR_MINUTE = MINUTE + 250
const NOTHING: RateHeaders = { limit: null, remaining: null, resetMs: null, retryAfterMs: null }

interface Setting {
  rules?: Partial<RateRules & { maxWaitMs: number }>
  store?: TestBudgetStore
  slots?: LimitFunction
  clock?: SteppedClock
  scope?: string
}

function createSetting({
  rules,
  store = createTestBudgetStore(),
  slots = pLimit(8),
  clock = createSteppedClock(),
  scope = 'a',
}: Setting = {}) {
  const defaults = {
    requestsPerMinute: null,
    sharePercent: 100,
    fallbackWaitMs: MINUTE,
    maxWaitMs: 15 * MINUTE,
  }
  const { now, sleep } = clock
  const limiter = createRateLimiter({
    scope,
    by: 'this process',
    rules: { ...defaults, ...rules },
    store,
    slots,
    now,
    sleep,
    random: () => 0.5,
  })
  return { limiter, clock, store, slots }
}

/** A rate limiter, and how often it has read and written its store. */
function createCounted() {
  const store = createTestBudgetStore()
  let reads = 0
  const read: TestBudgetStore['read'] = (scope) => {
    reads++
    return store.read(scope)
  }
  const { limiter } = createSetting({ store: { ...store, read } })
  return { limiter, reads: () => reads, writes: store.writes }
}

function notSentYet(): never {
  throw new Error('the request was not sent yet')
}

/** A request at a rate limiter: its reports, whether it is on its way, and functions that answer it. */
function passing(limiter: RateLimiter, signal = new AbortController().signal) {
  const { observer, reports } = createObserver()
  let finish: (tell: (answer: Answer) => void) => void = notSentYet
  const one = {
    reports,
    sent: false,
    outcome: null as unknown,
    answer: (remaining: number, limit: number, resetMs: number | null = null) =>
      finish((answer) => answer.accepted({ ...NOTHING, limit, remaining, resetMs })),
    succeed: () => finish((answer) => answer.accepted(NOTHING)),
    throttle: (announcement: Partial<RateHeaders> = {}) =>
      finish((answer) => {
        answer.throttled({ ...NOTHING, ...announcement })
        throw new Error('429')
      }),
    fail: () =>
      finish(() => {
        throw new Error('network')
      }),
  }
  const send = (answer: Answer) => {
    one.sent = true
    return new Promise<string>((resolve, reject) => {
      finish = (tell) => {
        try {
          tell(answer)
          resolve('the answer')
        } catch (error) {
          reject(error)
        }
      }
    })
  }
  limiter.pass(send, observer, signal).then(
    (value) => {
      one.outcome = value
    },
    (error: unknown) => {
      one.outcome = error
    },
  )
  return one
}

/** One request and its response: the first of a budget leaves alone. */
async function hear(limiter: RateLimiter): Promise<void> {
  const one = passing(limiter)
  await settle()
  one.succeed()
  await settle()
}

/** A store whose writes wait until the test says so, as behind another process's lock. */
function createLockedStore() {
  const store = createTestBudgetStore()
  const lock = Promise.withResolvers<void>()
  let isLocked = false
  const compareAndSet: TestBudgetStore['compareAndSet'] = async (...asked) => {
    if (isLocked) await lock.promise
    return store.compareAndSet(...asked)
  }
  const lockUp = () => {
    isLocked = true
  }
  return { store: { ...store, compareAndSet }, lock: lockUp, unlock: lock.resolve }
}

function whoSent(all: { sent: boolean }[]): number[] {
  return all.flatMap(({ sent }, index) => (sent ? [index] : []))
}

describe('an open budget', () => {
  it('lets a request leave at once and returns its result', async () => {
    const { limiter } = createSetting()

    const one = passing(limiter)
    await settle()
    one.succeed()
    await settle()

    expect(one).toMatchObject({ sent: true, outcome: 'the answer', reports: [['waited', 0]] })
  })

  it('reads twice for a request, when it comes and when it leaves, and writes nothing', async () => {
    const { limiter, reads, writes } = createCounted()
    await hear(limiter)
    const before = { reads: reads(), writes: writes() }

    const one = passing(limiter)
    await settle()
    expect(one.sent).toBe(true)
    one.succeed()
    await settle()

    expect(reads() - before.reads).toBe(2)
    expect(writes() - before.writes).toBe(0)
  })

  it('rejects with the error of the request', async () => {
    const { limiter } = createSetting()

    const one = passing(limiter)
    await settle()
    one.fail()
    await settle()

    expect(one.outcome).toEqual(new Error('network'))
  })

  it('lets the first request leave alone, and the others after its response', async () => {
    const { limiter, clock } = createSetting()

    const all = [passing(limiter), passing(limiter), passing(limiter)]
    await clock.pass(5000)
    expect(whoSent(all)).toEqual([0])
    all[0]?.fail()
    await settle()

    expect(whoSent(all)).toEqual([0, 1, 2])
    // It is unknown how long that takes.
    expect(all[1]?.reports).toEqual([['waited', 5000]])
  })

  it('has no more requests on their way than there are slots', async () => {
    const { limiter } = createSetting({ slots: pLimit(2) })
    await hear(limiter)

    const all = [passing(limiter), passing(limiter), passing(limiter), passing(limiter)]
    await settle()
    expect(whoSent(all)).toEqual([0, 1])
    all[1]?.fail()
    await settle()

    expect(whoSent(all)).toEqual([0, 1, 2])
  })

  it('shares its slots with other budgets, and decides again once it has one', async () => {
    const slots = pLimit(1)
    const [{ limiter, clock }, other] = [
      createSetting({ slots, rules: { requestsPerMinute: 1 } }),
      createSetting({ slots, scope: 'b' }),
    ]
    const first = passing(other.limiter)
    await settle()
    const second = passing(limiter)
    await settle()
    expect(second.sent).toBe(false)

    await clock.pass(5000)
    first.succeed()
    await settle()

    expect(second.sent).toBe(true)
    expect(second.reports).toEqual([['waited', 5000]])
  })

  it('stays closed to a request that gets a slot after another process got a 429', async () => {
    const slots = pLimit(1)
    const { limiter, clock, store } = createSetting({ slots })
    const busy = passing(createSetting({ slots, scope: 'b' }).limiter)
    await settle()
    const waiter = passing(limiter)
    await settle()

    store.change('a', { closedUntil: clock.now() + 5000 })
    busy.succeed()
    await clock.pass(4999)
    expect(waiter.sent).toBe(false)
    await clock.pass(1)

    expect(waiter.sent).toBe(true)
  })
})

describe('waiters', () => {
  it('leave in the order they came', async () => {
    const { limiter, clock } = createSetting({ rules: { requestsPerMinute: 1 } })
    await hear(limiter)
    const all = Array.from({ length: 5 }, () => passing(limiter))
    const order: number[][] = []

    for (let minute = 0; minute < 5; minute++) {
      await clock.pass(OUR_MINUTE + 500)
      order.push(whoSent(all))
      all[minute]?.succeed()
    }

    expect(order).toEqual([[0], [0, 1], [0, 1, 2], [0, 1, 2, 3], [0, 1, 2, 3, 4]])
  })

  it('leave in the order they came when slots are scarce, too', async () => {
    const { limiter, clock, slots } = createSetting({ rules: { requestsPerMinute: 2 }, slots: pLimit(1) })
    const busy = Promise.withResolvers<void>()
    void slots(() => busy.promise)
    const all = Array.from({ length: 4 }, () => passing(limiter))
    await clock.pass(1000)
    expect(whoSent(all)).toEqual([])

    busy.resolve()
    await settle()
    for (const one of all) {
      await clock.pass(2 * MINUTE)
      expect(one.sent).toBe(true)
      one.succeed()
    }
  })

  it('each report why and until when', async () => {
    const { limiter, clock } = createSetting({ rules: { requestsPerMinute: 1 } })
    const open = clock.now() + OUR_MINUTE
    await hear(limiter)

    const [second, third] = [passing(limiter), passing(limiter)]
    await clock.pass(1000)

    expect(second.reports).toEqual([['wait', 'our own limit of 1 requests a minute', open]])
    expect(third.reports).toEqual(second.reports)
    await clock.pass(MINUTE)
    expect(second.reports.slice(1)).toEqual([['waited', OUR_MINUTE]])
    second.succeed()
    await settle()
    // It left in the first half of a second.
    const next = open + OUR_MINUTE + 250
    expect(third.reports.slice(1)).toEqual([['wait', 'our own limit of 1 requests a minute', next]])
  })

  it('report the limit of the server', async () => {
    const { limiter, clock } = createSetting()
    const one = passing(limiter)
    await settle()
    one.answer(0, 60)

    const other = passing(limiter)
    await settle()

    expect(other.reports).toEqual([
      ['wait', "the server's limit of 60 requests a minute", clock.now() + MINUTE + 250],
    ])
  })

  it('leave once a response shows that the budget is open again', async () => {
    const { limiter, clock } = createSetting()
    await hear(limiter)
    const all = [passing(limiter), passing(limiter)]
    await settle()
    all[0]?.answer(1, 60)
    await settle()
    const waiter = passing(limiter)
    await clock.pass(1000)
    expect(waiter.sent).toBe(false)

    all[1]?.fail()
    await settle()

    expect(waiter.sent).toBe(true)
    expect(waiter.reports.at(-1)).toEqual(['waited', 1000])
  })
})

describe('a waiter that is aborted', () => {
  it.each(['the first in line', 'one behind it'])('rejects at once: %s', async (place) => {
    const { limiter, clock } = createSetting({ rules: { requestsPerMinute: 1 } })
    const stop = new AbortController()
    await hear(limiter)
    const ahead = place === 'one behind it' ? [passing(limiter)] : []
    const stopped = passing(limiter, stop.signal)
    await clock.pass(1000)

    stop.abort(new Error('stopped'))
    await settle()

    expect(stopped).toMatchObject({ sent: false, outcome: new Error('stopped') })
    expect(stopped.reports.at(-1)).toEqual(['waited', 1000])
    expect(whoSent(ahead)).toEqual([])
  })

  it('rejects at once while it waits for a slot, and is never sent', async () => {
    const { limiter } = createSetting({ slots: pLimit(1) })
    const stop = new AbortController()
    await hear(limiter)
    const busy = passing(limiter)
    await settle()
    const stopped = passing(limiter, stop.signal)
    await settle()

    stop.abort(new Error('stopped'))
    await settle()
    expect(stopped.outcome).toEqual(new Error('stopped'))
    busy.succeed()
    await settle()

    expect(stopped.sent).toBe(false)
  })

  it('rejects at once if it was aborted before it came', async () => {
    const { limiter } = createSetting()

    const stopped = passing(limiter, AbortSignal.abort(new Error('stopped')))
    await settle()

    expect(stopped).toMatchObject({ sent: false, outcome: new Error('stopped') })
  })

  it('leaves its place to those behind it', async () => {
    const { limiter, clock } = createSetting({ rules: { requestsPerMinute: 1 } })
    const stop = new AbortController()
    await hear(limiter)
    const [first, second, last] = [
      passing(limiter, stop.signal),
      passing(limiter, stop.signal),
      passing(limiter),
    ]
    await settle()

    stop.abort(new Error('stopped'))
    await clock.pass(OUR_MINUTE)

    expect(whoSent([first, second, last])).toEqual([2])
  })
})

describe('a 429', () => {
  it('closes the budget for the time that the server said, a second and a jitter', async () => {
    const { limiter, clock } = createSetting()
    const one = passing(limiter)
    await settle()
    one.throttle({ retryAfterMs: 30_000 })
    await settle()
    const end = clock.now() + 30_000 + 1000 + 500

    const other = passing(limiter)
    await clock.pass(31_499)
    expect(other).toMatchObject({ sent: false, reports: [['wait', 'the server asked for a pause', end]] })
    await clock.pass(1)

    expect(other.sent).toBe(true)
    expect(one.outcome).toEqual(new Error('429'))
  })

  it('closes the budget for requests that wait already', async () => {
    const { limiter, clock } = createSetting({ rules: { requestsPerMinute: 1 } })
    const one = passing(limiter)
    await settle()
    const waiter = passing(limiter)
    await clock.pass(MINUTE)
    one.throttle({ retryAfterMs: 120_000 })
    await clock.pass(120_000)
    expect(waiter.sent).toBe(false)

    await clock.pass(1500)

    expect(waiter.sent).toBe(true)
    expect(waiter.reports.map(([, reason]) => reason)).toContain('the server asked for a pause')
  })

  it('that announces nothing closes it for the fallback', async () => {
    const { limiter, clock } = createSetting({ rules: { fallbackWaitMs: 20_000 } })
    const one = passing(limiter)
    await settle()
    one.throttle()
    await settle()

    const other = passing(limiter)
    await clock.pass(21_499)
    expect(other.sent).toBe(false)
    await clock.pass(1)

    expect(other.sent).toBe(true)
  })

  it('closes no other budget', async () => {
    const store = createTestBudgetStore()
    const [{ limiter }, other] = [createSetting({ store, scope: 'a' }), createSetting({ store, scope: 'b' })]
    const one = passing(limiter)
    await settle()
    one.throttle()

    const another = passing(other.limiter)
    await settle()

    expect(another.sent).toBe(true)
  })
})

describe('a pause', () => {
  it('is kept for the next run', async () => {
    const { limiter, clock, store } = createSetting()
    const one = passing(limiter)
    await settle()
    one.throttle({ retryAfterMs: 30_000 })
    await settle()

    const { limiter: next } = createSetting({ store, clock })
    const other = passing(next)
    await clock.pass(31_499)
    expect(other.sent).toBe(false)
    await clock.pass(1)

    expect(other.sent).toBe(true)
  })

  it('holds for a rate limiter that was open before another got it', async () => {
    const { limiter, clock, store } = createSetting()
    const { limiter: other } = createSetting({ store, clock })
    const one = passing(limiter)
    await settle()
    one.throttle({ retryAfterMs: 30_000 })
    await settle()

    const another = passing(other)
    await settle()

    expect(another.sent).toBe(false)
  })

  it('ends once it is forgotten', async () => {
    const { limiter, store } = createSetting()
    const one = passing(limiter)
    await settle()
    one.throttle({ retryAfterMs: 60 * MINUTE })
    await settle()
    expect(await limiter.refusal()).not.toBeNull()

    store.change('a', { closedUntil: 0 })
    const other = passing(limiter)
    await settle()

    expect(other.sent).toBe(true)
  })

  it('holds here while it cannot be written; of two the longer one counts', async () => {
    const { store, lock, unlock } = createLockedStore()
    const { limiter, clock } = createSetting({ store })
    await hear(limiter)
    const [short, long] = [passing(limiter), passing(limiter)]
    await settle()
    lock()

    long.throttle({ retryAfterMs: 40_000 })
    short.throttle({ retryAfterMs: 10_000 })
    const waiter = passing(limiter)
    await clock.pass(41_499)
    expect(waiter.sent).toBe(false)
    expect(store.kept('a').closedUntil).toBe(0)
    const closedUntil = clock.now() + 1
    unlock()
    await clock.pass(1)

    expect(waiter.sent).toBe(true)
    expect(store.kept('a').closedUntil).toBe(closedUntil)
  })

  it('is refused if it is longer than maxWait, by however little', async () => {
    const { limiter, clock, store } = createSetting({ rules: { maxWaitMs: 5 * MINUTE } })

    store.change('a', { closedUntil: clock.now() + 5 * MINUTE })
    expect(await limiter.refusal()).toBeNull()
    store.change('a', { closedUntil: clock.now() + 5 * MINUTE + 1 })

    expect(await limiter.refusal()).toMatchObject({ code: 'RATE_LIMITED' })
    expect((await limiter.refusal())?.message).toContain('(admin-mirror resume forgets the wait)')
  })

  it('that is longer than maxWait is refused at once, with nothing sent', async () => {
    const { limiter, clock } = createSetting({ rules: { maxWaitMs: 5 * MINUTE } })
    const one = passing(limiter)
    await settle()
    one.throttle({ retryAfterMs: 2 * 60 * MINUTE })
    await clock.pass(1000)
    const opens = new Date(clock.now() - 1000 + 2 * 60 * MINUTE + 1500).toISOString()

    const other = passing(limiter)
    await settle()

    expect(other.sent).toBe(false)
    expect(other.reports).toEqual([['waited', 0]])
    expect(other.outcome).toBeInstanceOf(JobError)
    expect(other.outcome).toMatchObject({ code: 'RATE_LIMITED' })
    expect(String(other.outcome)).toContain('the server asked for a pause, 2 hours long')
    expect(String(other.outcome)).toContain('more than rateLimit.maxWait (5 minutes)')
    expect(String(other.outcome)).toContain(`nothing is sent before ${opens}`)
    expect(await limiter.refusal()).toEqual(other.outcome)
  })

  it('is refused to requests that wait already', async () => {
    const { limiter, clock } = createSetting({ rules: { requestsPerMinute: 1 } })
    const one = passing(limiter)
    await settle()
    const waiter = passing(limiter)
    await clock.pass(1000)

    one.throttle({ retryAfterMs: 60 * MINUTE })
    await clock.pass(MINUTE)

    expect(waiter).toMatchObject({ sent: false, outcome: { code: 'RATE_LIMITED' } })
  })

  it('is no longer refused once the rest of it is short enough', async () => {
    const { limiter, clock } = createSetting({ rules: { maxWaitMs: 5 * MINUTE } })
    const one = passing(limiter)
    await settle()
    one.throttle({ retryAfterMs: 60 * MINUTE })
    await clock.pass(56 * MINUTE)
    expect(await limiter.refusal()).toBeNull()

    const other = passing(limiter)
    await clock.pass(4 * MINUTE + 1500)

    expect(other.sent).toBe(true)
  })

  it('of our own is not refused', async () => {
    const { limiter, clock } = createSetting({ rules: { requestsPerMinute: 1, maxWaitMs: 5000 } })
    await hear(limiter)

    const other = passing(limiter)
    await clock.pass(OUR_MINUTE)

    expect(await limiter.refusal()).toBeNull()
    expect(other.sent).toBe(true)
  })

  it('stored for longer than a day is ignored', async () => {
    const { limiter, clock, store } = createSetting()
    store.change('a', { closedUntil: clock.now() + 24 * 60 * MINUTE + 1 })

    const one = passing(limiter)
    await settle()

    expect(await limiter.refusal()).toBeNull()
    expect(one).toMatchObject({ sent: true, reports: [['waited', 0]] })
  })

  it('holds though the store holds a later one that is ignored', async () => {
    const clock = createSteppedClock()
    const wrong = clock.now() + 25 * 60 * MINUTE
    const { limiter, store } = createSetting({ clock })
    store.change('a', { closedUntil: wrong })
    const one = passing(limiter)
    await settle()
    one.throttle({ retryAfterMs: 30_000 })
    await settle()

    const other = passing(limiter)
    await clock.pass(31_499)
    expect(other.sent).toBe(false)
    await clock.pass(1)

    expect(other.sent).toBe(true)
  })

  it('stored for a day is refused', async () => {
    const { limiter, clock, store } = createSetting()

    store.change('a', { closedUntil: clock.now() + 24 * 60 * MINUTE })

    expect(await limiter.refusal()).toMatchObject({ code: 'RATE_LIMITED' })
  })

  it('until a reset beyond maxWait is refused, outlasts the run, and can be forgotten', async () => {
    const { limiter, clock, store } = createSetting()
    const one = passing(limiter)
    await settle()

    one.answer(0, 60, 60 * MINUTE)
    await settle()

    expect(one.outcome).toBe('the answer')
    expect(await limiter.refusal()).toMatchObject({ code: 'RATE_LIMITED' })
    expect(await createSetting({ store, clock }).limiter.refusal()).toMatchObject({ code: 'RATE_LIMITED' })
    store.change('a', { closedUntil: 0 })
    expect(await limiter.refusal()).toBeNull()
  })

  it('until a reset within maxWait is waited out', async () => {
    const { limiter, clock } = createSetting()
    const one = passing(limiter)
    await settle()
    one.answer(0, 60, 5 * MINUTE)
    await settle()

    const other = passing(limiter)
    await clock.pass(5 * MINUTE + 999)
    expect(other.sent).toBe(false)
    await clock.pass(1)

    expect(other.sent).toBe(true)
  })
})

/** The clock of a rate limiter, which can be set back while time continues. */
function createSettable() {
  const clock = createSteppedClock()
  let behind = 0
  return {
    clock: { ...clock, now: () => clock.now() - behind },
    setBack: () => {
      behind = 24 * 60 * MINUTE
    },
  }
}

describe('a clock that is set back by a day', () => {
  it('holds a request back for one window of our own ceiling, and no longer', async () => {
    const { clock, setBack } = createSettable()
    const { limiter } = createSetting({ rules: { requestsPerMinute: 1 }, clock })
    await hear(limiter)
    setBack()

    const other = passing(limiter)
    await clock.pass(OUR_MINUTE + 499)
    expect(other.sent).toBe(false)
    await clock.pass(1)

    expect(other.sent).toBe(true)
  })

  it('holds a request back for one window of the server, and no longer', async () => {
    const { clock, setBack } = createSettable()
    const { limiter } = createSetting({ clock })
    const one = passing(limiter)
    await settle()
    one.answer(0, 60)
    await settle()
    setBack()

    const other = passing(limiter)
    await clock.pass(MINUTE + 1000)

    expect(other.sent).toBe(true)
  })

  it('does not shorten the reported wait', async () => {
    const { clock, setBack } = createSettable()
    const { limiter } = createSetting({ clock, rules: { requestsPerMinute: 1 } })
    await hear(limiter)
    const other = passing(limiter)
    await clock.pass(1000)

    setBack()
    await clock.pass(3 * MINUTE)

    expect(other.sent).toBe(true)
    other.succeed()
    await settle()
    expect(other.reports.at(-1)).toEqual(['waited', 0])
  })
})
