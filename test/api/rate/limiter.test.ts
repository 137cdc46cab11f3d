import { getEventListeners } from 'node:events'
import pLimit from 'p-limit'
import { describe, expect, it } from 'vitest'
import type { Urgency } from '../../../src/sync/types.ts'
import { settle } from '../../helpers/clock.ts'
import {
  createBudgetStore,
  createScene,
  hear,
  MINUTE,
  NOTHING,
  OUR_MINUTE,
  passing,
  type TestBudgetStore,
} from '../helpers/rate.ts'

describe('an open budget', () => {
  it('lets one request leave first, and the others when it is answered or fails', async () => {
    const { limiter, clock } = createScene()
    const { signal } = new AbortController()
    const [first, second, third] = [passing(limiter), passing(limiter, { signal }), passing(limiter)]
    await clock.pass(30_000)
    expect([first, second, third].map(({ sent }) => sent)).toEqual([true, false, false])

    first.fail()
    await settle()

    expect([second, third].map(({ sent }) => sent)).toEqual([true, true])
    expect(second.reports).toEqual([['waited', 30_000]])
    expect(getEventListeners(signal, 'abort')).toEqual([])
  })

  it('shares its slots with other budgets, and decides again once it has one', async () => {
    const slots = pLimit(1)
    const [{ limiter, clock }, other] = [
      createScene({ slots, rules: { requestsPerMinute: 1 } }),
      createScene({ slots, budgetKey: 'b' }),
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

it.each([
  ['while a permit is taken', false],
  ['while a pause is written', true],
])('a store that fails %s fails a request, and keeps no slot', async (_when, isThrottled) => {
  const store = createBudgetStore()
  let fails = false
  const compareAndSet: TestBudgetStore['compareAndSet'] = async (...asked) => {
    if (fails) throw new Error('the disk is full')
    return store.compareAndSet(...asked)
  }
  const { limiter, clock } = createScene({ store: { ...store, compareAndSet }, slots: pLimit(1) })
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

describe('waiters', () => {
  it('each report why and until when', async () => {
    const { limiter, clock } = createScene({ rules: { requestsPerMinute: 1 } })
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

  it('leave one by one after a pause until there is an answer: refreshes first, older pages last', async () => {
    const { limiter, clock } = createScene()
    await hear(limiter)
    const one = passing(limiter)
    await settle()
    one.throttle({ retryAfterMs: 1000 })
    const waiters = (['older', 'walk', 'refresh'] as Urgency[]).map((urgency) =>
      passing(limiter, { urgency }),
    )
    await clock.pass(3000)
    expect(waiters.map(({ sent }) => sent)).toEqual([false, false, true])

    waiters[2]?.throttle({ retryAfterMs: 1000 })
    await clock.pass(5000)
    expect(waiters.map(({ sent }) => sent)).toEqual([false, true, true])
    waiters[1]?.succeed()
    await settle()

    expect(waiters.map(({ sent }) => sent)).toEqual([true, true, true])
  })
})

it('a walk goes on beside refreshes that may use the whole budget', async () => {
  const { limiter, clock } = createScene({ rules: { requestsPerMinute: 10, refreshPercent: 100 } })
  const stop = new AbortController()
  const left = { refresh: 0, walk: 0 }
  const goOn = async (urgency: keyof typeof left) => {
    const request = async () => {
      left[urgency]++
      return { announced: NOTHING, isThrottled: false }
    }
    for (;;) await limiter.send(request, { urgency, observe: () => {}, signal: stop.signal })
  }
  for (const urgency of ['refresh', 'refresh', 'walk'] as const) goOn(urgency).catch(() => {})

  await clock.pass(30 * MINUTE)
  stop.abort()

  // One of its requests waits for a minute, and then for the next minute's first permit.
  expect(left.walk).toBeGreaterThanOrEqual(14)
})

describe('a pause', () => {
  it('holds here while it cannot be written', async () => {
    const store = createBudgetStore()
    const { promise: unlocked, resolve: unlock } = Promise.withResolvers<void>()
    let isLocked = false
    const compareAndSet: TestBudgetStore['compareAndSet'] = async (...asked) => {
      if (isLocked) await unlocked
      return store.compareAndSet(...asked)
    }
    const { limiter, clock } = createScene({ store: { ...store, compareAndSet } })
    await hear(limiter)
    const refused = passing(limiter)
    await settle()
    isLocked = true

    refused.throttle({ retryAfterMs: 40_000 })
    const waiter = passing(limiter)
    await clock.pass(30_000)
    unlock()
    await clock.pass(10_999)
    expect(waiter.sent).toBe(false)
    await clock.pass(1)

    expect(waiter.sent).toBe(true)
  })

  it('of just maxWait is waited for, whatever is added to it; one that is longer is refused at once, with nothing sent', async () => {
    const { limiter, clock, store } = createScene({ rules: { maxWait: 5 * MINUTE } })
    store.change('a', { closedUntil: clock.now() + 5 * MINUTE + 1000 })
    expect(await limiter.refusal()).toBeNull()
    const closedUntil = clock.now() + 120 * MINUTE
    store.change('a', { closedUntil })

    const one = passing(limiter)
    await settle()

    expect(one.sent).toBe(false)
    expect(one.reports).toEqual([['waited', 0]])
    expect(one.outcome).toMatchObject({
      name: 'JobError',
      code: 'RATE_LIMITED',
      message:
        'the server takes no more requests for now, and the wait of 2 hours is longer than rateLimit.maxWait (5 minutes): nothing is sent before ' +
        `${new Date(closedUntil).toISOString()}, and the next run after that continues from here (admin-mirror resume forgets the wait)`,
    })
    expect(await limiter.refusal()).toEqual(one.outcome)
  })

  it('behind another, for more than an hour in all, is refused, too; a request after it may leave, and one that is taken ends that', async () => {
    const { limiter, clock } = createScene()
    const throttled = async () => {
      const one = passing(limiter)
      await settle()
      one.throttle({ retryAfterMs: 119_000 })
      await settle()
      return one.sent
    }
    for (let minutes = 0; minutes <= 60; minutes += 2) {
      expect([minutes, await throttled(), await limiter.refusal()]).toEqual([minutes, true, null])
      await clock.pass(2 * MINUTE)
    }

    expect(await throttled()).toBe(true)
    const waiting = passing(limiter)
    await settle()
    const message = expect.stringMatching(
      /^the server has taken no request for 62 minutes: nothing is sent before/,
    )
    expect(waiting.outcome).toMatchObject({ code: 'RATE_LIMITED', message })
    await clock.pass(2 * MINUTE)
    expect(await limiter.refusal()).toBeNull()
    await hear(limiter)
    expect([await throttled(), await limiter.refusal()]).toEqual([true, null])
  })
})
