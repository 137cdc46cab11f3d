import { describe, expect, it } from 'vitest'
import { MINUTE } from '../helpers/budgets.ts'
import { createSteppedClock, settle } from '../helpers/clock.ts'
import { createSetting, hear, passing } from '../helpers/limiter-scene.ts'
import { createTestBudgetStore } from '../helpers/stores.ts'

/** A budget whose clock may be set forward: then nobody is sure before the time that is said. */
function createScene(requestsPerMinute: number | null) {
  const clock = createSteppedClock()
  const kept = createTestBudgetStore()
  const state = { sureAt: 0, setAtWrite: false }
  const store = {
    ...kept,
    sureAt: () => state.sureAt,
    async compareAndSet(...write: Parameters<typeof kept.compareAndSet>) {
      const version = await kept.compareAndSet(...write)
      if (state.setAtWrite) state.sureAt = clock.now() + MINUTE
      state.setAtWrite = false
      return version
    },
  }
  return { ...createSetting({ rules: { requestsPerMinute }, store, clock }), state }
}

describe('after the clock was set forward', () => {
  it('no request leaves until it is known what was sent, and its wait is told', async () => {
    const { limiter, clock, state } = createScene(10)
    await hear(limiter)
    state.sureAt = clock.now() + MINUTE
    const one = passing(limiter)
    await clock.pass(MINUTE - 1)
    expect(one).toMatchObject({ sent: false, reports: [['wait', expect.any(String), state.sureAt]] })
    await clock.pass(1)

    expect(one.sent).toBe(true)
  })

  it('a request does not leave whose permit was being written', async () => {
    const { limiter, clock, state } = createScene(10)
    await hear(limiter)
    state.setAtWrite = true
    const one = passing(limiter)
    await clock.pass(MINUTE - 1)
    expect(one.sent).toBe(false)
    await clock.pass(1)

    expect(one.sent).toBe(true)
  })

  it('an answer that arrives is passed on at once, and its 429 is written once', async () => {
    const { limiter, clock, state, store } = createScene(10)
    await hear(limiter)
    const [one, refused] = [passing(limiter), passing(limiter)]
    await settle()
    state.sureAt = clock.now() + MINUTE
    const waiting = passing(limiter)
    await settle()
    one.succeed()
    refused.throttle()
    await settle()

    expect(one.outcome).toBe('the answer')
    expect(refused.outcome).toEqual(new Error('429'))
    expect(waiting.sent).toBe(false)
    expect(JSON.parse(store.kept('a').known ?? '{}')).toMatchObject({ throttled: 1 })
  })

  it('requests leave where nothing limits them', async () => {
    const { limiter, clock, state } = createScene(null)
    await hear(limiter)
    state.sureAt = clock.now() + MINUTE
    const one = passing(limiter)
    await settle()

    expect(one.sent).toBe(true)
  })
})
