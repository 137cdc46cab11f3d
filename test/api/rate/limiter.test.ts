import pLimit from 'p-limit'
import { describe, expect, it } from 'vitest'
import { budgetOf } from '../../../src/api/rate/budget.ts'
import { MINUTE } from '../helpers/budgets.ts'
import { createSteppedClock, settle } from '../helpers/clock.ts'
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
  it('reads once for a request, when it leaves, and writes nothing', async () => {
    const { limiter, reads, writes } = createCounted()
    await hear(limiter)
    const before = { reads: reads(), writes: writes() }

    const one = passing(limiter)
    await settle()
    expect(one.sent).toBe(true)
    one.succeed()
    await settle()

    expect(reads() - before.reads).toBe(1)
    expect(writes() - before.writes).toBe(0)
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

describe('a permit', () => {
  it('is given back if the signal comes while it is written', async () => {
    const store = createTestBudgetStore()
    const { promise: written, resolve: write } = Promise.withResolvers<void>()
    let isSlow = false
    const compareAndSet: TestBudgetStore['compareAndSet'] = async (...given) => {
      if (isSlow) await written
      return store.compareAndSet(...given)
    }
    const { limiter } = createSetting({
      rules: { requestsPerMinute: 60 },
      store: { ...store, compareAndSet },
    })
    await hear(limiter)
    isSlow = true
    const stop = new AbortController()
    const one = passing(limiter, stop.signal)
    await settle()

    stop.abort()
    isSlow = false
    write()
    await settle()
    await limiter.flush()

    expect(one.sent).toBe(false)
    const { closedUntil, known } = store.kept('a')
    expect(budgetOf(known, closedUntil).inFlight).toEqual([])
  })
})
