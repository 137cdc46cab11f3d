import { describe, expect, it } from 'vitest'
import { JobError } from '../../../src/errors.ts'
import { MINUTE } from '../helpers/budgets.ts'
import { settle } from '../helpers/clock.ts'
import { createSetting, hear, OUR_MINUTE, passing } from '../helpers/limiter-scene.ts'
import { createTestBudgetStore, type TestBudgetStore } from '../helpers/stores.ts'

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

  it('of our own is not refused', async () => {
    const { limiter, clock } = createSetting({ rules: { requestsPerMinute: 1, maxWaitMs: 5000 } })
    await hear(limiter)

    const other = passing(limiter)
    await clock.pass(OUR_MINUTE)

    expect(await limiter.refusal()).toBeNull()
    expect(other.sent).toBe(true)
  })
})
