import { describe, expect, it } from 'vitest'
import { decide } from '../../../src/api/rate/decision.ts'
import { createPermits, type Permit, type Permits } from '../../../src/api/rate/permits.ts'
import type { BudgetStore } from '../../../src/sync/types.ts'
import { announced, MINUTE, NOTHING, NOW, RULES, SECOND } from '../helpers/budgets.ts'
import { settle } from '../helpers/clock.ts'
import { createTestBudgetStore } from '../helpers/stores.ts'

/** Two processes on one budget, and a clock that the test sets. */
function createScene(changed = {}) {
  const store = createTestBudgetStore()
  const clock = { time: NOW }
  const rules = { ...RULES, ...changed }
  const open = (by: string, its: BudgetStore = store) =>
    createPermits({ budgetKey: 'a', by, rules, store: its, now: () => clock.time })
  const wait = async (permits: Permits) => {
    const decision = decide(await permits.view(), rules, clock.time)
    await permits.noteWait(decision)
    return decision
  }
  return { store, clock, open, wait, one: open('one'), other: open('the other') }
}

/** A permit that must be there. */
async function take(permits: Permits): Promise<Permit> {
  const permit = await permits.take()
  if (permit === null) throw new Error('there is no permit')
  return permit
}

/** One request and its answer. */
async function request(permits: Permits, answer = NOTHING): Promise<void> {
  permits.answered(await take(permits), answer)
  await permits.publish()
}

describe('a process that nothing limits', () => {
  it('writes nothing but for its first request', async () => {
    const { store, one } = createScene()
    await request(one)
    const first = store.writes()

    for (let count = 0; count < 50; count++) await request(one)

    expect(first).toBe(2)
    expect(store.writes()).toBe(first)
  })
})

async function meet429(permits: Permits): Promise<void> {
  await take(permits)
  permits.throttled(NOTHING, 0)
  await permits.publish()
}

describe('answers that announce nothing', () => {
  it('are counted once by each process when a 429 comes', async () => {
    const { clock, one, other, wait } = createScene()
    for (let count = 0; count < 5; count++) await request(one)
    for (let count = 0; count < 3; count++) await request(other)

    await meet429(one)
    expect(one.known().learned.count).toBe(5)
    await wait(other)
    clock.time += 2 * SECOND
    await wait(one)

    expect((await one.view()).learned.count).toBe(8)
    expect((await other.view()).learned.count).toBe(8)
  })
  it('do not include others', async () => {
    const { one } = createScene()
    await request(one, announced(60, 59))

    await meet429(one)

    expect(one.known().learned.count).toBe(0)
  })
})

describe('a change that others must know', () => {
  it.each([
    ['counts down by those in flight', 57, 0],
    ['counts down by more', 56, 1],
    ['has jumped up', 64, 1],
  ])('is a response that %s, or not', async (_what, remaining, writes) => {
    const { store, clock, one } = createScene()
    await request(one, announced(70, 60))
    const permit = await take(one)
    await take(one)
    await take(one)
    const before = store.writes()
    clock.time += SECOND

    one.answered(permit, announced(70, remaining))
    await one.publish()

    expect(store.writes() - before).toBe(writes)
  })

  it('is written even if it comes during another write', async () => {
    const { store, clock, open, one } = createScene()
    await request(one, announced(60, 59))
    const said = Promise.withResolvers<void>()
    const slow: BudgetStore = {
      ...store,
      compareAndSet: async (scope, version, next) => {
        const isSet = await store.compareAndSet(scope, version, next)
        await said.promise
        return isSet
      },
    }
    const other = open('the other', { ...store, compareAndSet: (...asked) => its.compareAndSet(...asked) })
    let its: BudgetStore = store
    const permit = await take(other)
    its = slow
    const written = other.take()
    await settle()
    other.answered(permit, announced(60, 0, 60 * MINUTE))

    said.resolve()
    await written
    await other.publish()

    expect(store.kept('a').closedUntil).toBeGreaterThan(clock.time)
  })

  it('is, after a second, the response to a request that was on its way when its process began to wait', async () => {
    const { store, clock, one, other, wait } = createScene()
    await request(one, announced(2, 1))
    const permit = await take(one)
    await wait(one)
    one.answered(permit, announced(2, 0))
    await one.publish()
    expect((await other.view()).inFlight).toMatchObject([{ by: 'one', count: 1 }])
    const before = store.writes()
    clock.time += SECOND

    await wait(one)
    await wait(one)

    expect(store.writes()).toBe(before + 1)
    expect((await other.view()).inFlight).toEqual([])
  })

  it('is at a flush, once, that nothing is in flight', async () => {
    const { store, one, other } = createScene()
    await request(one, announced(60, 59))
    await request(one, announced(60, 58))
    expect((await other.view()).inFlight).toMatchObject([{ by: 'one', count: 1 }])
    const before = store.writes()

    await one.flush()
    await one.flush()

    expect(store.writes()).toBe(before + 1)
    expect(await other.view()).toMatchObject({ inFlight: [], window: { remaining: 58, ours: 2 } })
  })
})

describe('a wait', () => {
  it('is written with its reason and its end, once', async () => {
    const { store, one, wait } = createScene()
    await request(one, announced(60, 0))
    const before = store.writes()

    const { at, reason } = await wait(one)
    await wait(one)

    expect(store.kept('a')).toMatchObject({ waitingFor: reason, waitingUntil: at })
    expect(reason).toBe("the server's limit of 60 requests a minute")
    expect(store.writes()).toBe(before + 1)
  })

  it.each([
    ['that ends within a second', announced(60, 0, 0)],
    ['for an answer', NOTHING],
  ])('is not written if it is one %s', async (_case, answer) => {
    const { store, one, other, wait } = createScene()
    if (answer === NOTHING) await take(other)
    else await request(one, answer)
    const before = store.writes()

    expect((await wait(one)).at).toBeGreaterThan(NOW)

    expect(store.writes()).toBe(before)
  })

  it('is written no longer once it is over', async () => {
    const { store, clock, one, wait } = createScene()
    await request(one, announced(60, 0))
    await wait(one)
    clock.time += MINUTE + SECOND

    await take(one)

    expect(store.kept('a')).toMatchObject({ waitingFor: null, waitingUntil: 0 })
  })
})
