import { getEventListeners } from 'node:events'
import pLimit from 'p-limit'
import { describe, expect, it } from 'vitest'
import { JobError } from '../../../src/errors.ts'
import type { Urgency } from '../../../src/sync/types.ts'
import { announced, MINUTE } from '../helpers/budgets.ts'
import { settle } from '../helpers/clock.ts'
import { createSetting, hear, OUR_MINUTE, passing } from '../helpers/limiter-scene.ts'
import { createObserver } from '../helpers/observer.ts'
import { createTestBudgetStore, type TestBudgetStore } from '../helpers/stores.ts'

describe('an open budget', () => {
  it('is written once for a request, when it leaves, and not read; no listener stays on its signal', async () => {
    const store = createTestBudgetStore()
    let reads = 0
    const read: TestBudgetStore['read'] = (scope) => {
      reads++
      return store.read(scope)
    }
    const { limiter } = createSetting({ store: { ...store, read } })
    await hear(limiter)
    const before = { reads, writes: store.writes() }

    const { signal } = new AbortController()
    const one = passing(limiter, signal)
    await settle()
    expect(one.sent).toBe(true)
    one.answer(59, 60)
    await settle()

    expect(getEventListeners(signal, 'abort')).toEqual([])
    expect({ reads, writes: store.writes() }).toEqual({ reads: before.reads, writes: before.writes + 1 })
  })

  it('lets one request leave first, of all processes, and the others when it is answered or does not come back', async () => {
    const { limiter, clock, store } = createSetting()
    const other = createSetting({ clock, store }).limiter
    const [first, second, third] = [passing(limiter), passing(limiter), passing(other)]
    await clock.pass(1000)
    expect([first, second, third].map(({ sent }) => sent)).toEqual([true, false, false])

    first.fail()
    await clock.pass(1000)
    expect([second, third].filter(({ sent }) => sent)).toHaveLength(1)
    await clock.pass(10_000)

    expect([second, third].map(({ sent }) => sent)).toEqual([true, true])
    expect(second.reports.filter(([what]) => what === 'wait')).toEqual([])
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

describe('a store that fails', () => {
  it.each([
    ['while a permit is taken', false],
    ['while a pause is written', true],
  ])('fails a request, and keeps no slot: %s', async (_when, isThrottled) => {
    const store = createTestBudgetStore()
    let fails = false
    const compareAndSet: TestBudgetStore['compareAndSet'] = async (...asked) => {
      if (fails) throw new Error('the disk is full')
      return store.compareAndSet(...asked)
    }
    const { limiter, clock } = createSetting({ store: { ...store, compareAndSet }, slots: pLimit(1) })
    await hear(limiter)
    const lost = passing(limiter)
    if (isThrottled) await settle()
    fails = true
    if (isThrottled) lost.throttle({ retryAfterMs: 1000 })
    await settle()
    expect(lost.outcome).toEqual(new Error('the disk is full'))
    fails = false

    const next = passing(limiter)
    await clock.pass(5000)

    expect(next.sent).toBe(true)
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

  it('leave one by one after a pause until there is an answer', async () => {
    const { limiter, clock } = createSetting()
    await hear(limiter)
    const one = passing(limiter)
    await settle()
    one.throttle({ retryAfterMs: 1000 })
    const waiters = [passing(limiter), passing(limiter)]
    await clock.pass(3000)
    expect(waiters.map(({ sent }) => sent)).toEqual([true, false])

    waiters[0]?.succeed()
    await settle()

    expect(waiters.map(({ sent }) => sent)).toEqual([true, true])
  })

  it('are overtaken by a refresh, which finds room every 2 seconds beside a walk that asks all the time', async () => {
    const { limiter, clock } = createSetting({ rules: { refreshPercent: 50 } })
    const stop = new AbortController()
    const { observe } = createObserver()
    let sent = 0
    const send = (urgency: Urgency) =>
      limiter.send(
        async (report) => {
          sent++
          await clock.sleep(50, stop.signal)
          report.answered(announced(60, 60))
        },
        { urgency, observe, signal: stop.signal },
      )
    const walk = async () => {
      for (;;) await send('walk')
    }
    void send('refresh').catch(() => {})
    await clock.pass(1000)
    void walk().catch(() => {})
    for (let turn = 0; turn < 60; turn++) {
      sent = 0
      await clock.pass(2000)
      // A refresh of the list that is walked is sent between two of its pages.
      expect(sent, `turn ${turn}`).toBeGreaterThan(0)
      void send('refresh').catch(() => {})
    }
    stop.abort()
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
