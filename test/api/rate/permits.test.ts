import { describe, expect, it } from 'vitest'
import type { Permits } from '../../../src/api/rate/permits.ts'
import type { BudgetStore } from '../../../src/sync/types.ts'
import { announced, MINUTE, NOTHING, NOW, SECOND } from '../helpers/budgets.ts'
import { createScene, request, take } from '../helpers/permits-scene.ts'

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

describe('a permit', () => {
  it('is one write, and a response that counts down is none', async () => {
    const { store, one } = createScene()
    await request(one, announced(60, 59))
    const before = store.writes()

    for (let left = 58; left >= 40; left--) await request(one, announced(60, left))

    expect(store.writes() - before).toBe(19)
  })

  it('is decided by the clock and the budget of the moment in which it is written', async () => {
    const { store, clock, open, one } = createScene()
    await request(one, announced(60, 59))
    const locked: BudgetStore = {
      ...store,
      compareAndSet: (scope, version, next) => {
        clock.time += 2 * MINUTE
        return store.compareAndSet(scope, version, next)
      },
    }

    await take(open('a slow one', locked))

    expect((await one.view()).inFlight).toEqual([{ by: 'a slow one', count: 1, at: NOW + 2 * MINUTE }])
  })

  it('is refused while the budget of another process is closed, from its write on', async () => {
    const { store, open, one, other } = createScene()
    await request(one, announced(60, 59))
    await take(other)
    let isFirst = true
    const slow: BudgetStore = {
      ...store,
      compareAndSet: async (scope, version, next) => {
        if (isFirst) {
          isFirst = false
          other.throttled({ ...NOTHING, retryAfterMs: MINUTE }, 0)
          await other.publish()
        }
        return store.compareAndSet(scope, version, next)
      },
    }

    expect(await open('a slow one', slow).take()).toBeNull()
    expect(store.conflicts()).toBe(1)
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

  it('are counted for the last minute, however long they have come', async () => {
    const { clock, one } = createScene()
    for (let second = 0; second < 150; second++) {
      await request(one)
      clock.time += SECOND
    }

    await meet429(one)

    expect(one.known().learned.count).toBe(59)
  })
})
