import { getEventListeners } from 'node:events'
import pLimit from 'p-limit'
import { describe, expect, it } from 'vitest'
import { JobError } from '../../../src/errors.ts'
import { MINUTE } from '../helpers/budgets.ts'
import { settle } from '../helpers/clock.ts'
import { createSetting, hear, OUR_MINUTE, passing } from '../helpers/limiter-scene.ts'
import { createTestBudgetStore, type TestBudgetStore } from '../helpers/stores.ts'

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

describe('an open budget', () => {
  it('reads once for a request, when it leaves, writes nothing, and leaves no listener on its signal', async () => {
    const { limiter, reads, writes } = createCounted()
    await hear(limiter)
    const before = { reads: reads(), writes: writes() }

    const { signal } = new AbortController()
    const one = passing(limiter, signal)
    await settle()
    expect(one.sent).toBe(true)
    one.succeed()
    await settle()

    expect(getEventListeners(signal, 'abort')).toEqual([])
    expect(reads() - before.reads).toBe(1)
    expect(writes() - before.writes).toBe(0)
  })

  it('shares its slots with other budgets, and decides again once it has one', async () => {
    const slots = pLimit(1)
    const [{ limiter, clock }, other] = [
      createSetting({ slots, rules: { requestsPerMinute: 1 } }),
      createSetting({ slots, budgetKey: 'b' }),
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
})

describe('waiters', () => {
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
    const next = open + OUR_MINUTE
    expect(third.reports.slice(1)).toEqual([['wait', 'our own limit of 1 requests a minute', next]])
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

describe('a pause', () => {
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

  it('of just maxWait is waited for, whatever is added to it; a second more is refused', async () => {
    const { limiter, clock, store } = createSetting({ rules: { maxWaitMs: 5 * MINUTE } })

    store.change('a', { closedUntil: clock.now() + 5 * MINUTE + 1900 })
    expect(await limiter.refusal()).toBeNull()
    store.change('a', { closedUntil: clock.now() + 5 * MINUTE + 1901 })

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
})
