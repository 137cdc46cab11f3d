import pLimit from 'p-limit'
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

describe('a waiter that is aborted', () => {
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
