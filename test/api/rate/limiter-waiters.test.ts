import { describe, expect, it } from 'vitest'
import { MINUTE } from '../helpers/budgets.ts'
import { settle } from '../helpers/clock.ts'
import { createSetting, hear, OUR_MINUTE, passing } from '../helpers/limiter-scene.ts'
import { createTestBudgetStore } from '../helpers/stores.ts'

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

describe('a 429', () => {
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
