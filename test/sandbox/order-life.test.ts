import { describe, expect, it } from 'vitest'
import {
  type OrderSource,
  orderCreatedAt,
  orderLife,
  orderState,
  ordersBy,
} from '../../src/sandbox/order-life.ts'

const SOURCE: OrderSource = { key: 12_345, originals: 200, establishments: 5 }
const STEPS = ['pending', 'paid', 'shipped', 'delivered']
const INDEXES = Array.from({ length: 260 }, (_, index) => index)

describe('ordersBy', () => {
  it('is the number of originals at tick 0', () => {
    expect(ordersBy(SOURCE, 0)).toBe(200)
  })

  it('grows by one at a time, and by fifteen a minute', () => {
    const counts = Array.from({ length: 601 }, (_, tick) => ordersBy(SOURCE, tick))

    const steps = new Set(counts.slice(1).map((count, at) => count - (counts[at] ?? 0)))
    expect(steps).toEqual(new Set([0, 1]))
    expect(counts[600]).toBe(200 + 150)
  })
})

describe('orderCreatedAt', () => {
  it('rises with the index, from the originals to the new ones', () => {
    const moments = INDEXES.map((index) => orderCreatedAt(SOURCE, index))

    expect(moments.every((moment, at) => at === 0 || moment > (moments[at - 1] ?? 0))).toBe(true)
  })

  it('does not depend on how many orders there are', () => {
    expect(orderCreatedAt({ ...SOURCE, originals: 100_000 }, 150)).toBe(orderCreatedAt(SOURCE, 150))
  })
})

describe('an order', () => {
  it.each(INDEXES.filter((index) => index % 13 === 0))('%i only moves forward', (index) => {
    const lives = Array.from({ length: 40 }, (_, step) => orderLife(SOURCE, index, step * 100))

    for (const [at, life] of lives.entries()) {
      const before = lives[at - 1] ?? life
      expect([before.state, ...STEPS.slice(STEPS.indexOf(before.state)), 'cancelled']).toContain(life.state)
      expect(life.updatedAt).toBeGreaterThanOrEqual(before.updatedAt)
      expect(life.touches).toBeGreaterThanOrEqual(before.touches)
      expect(life.deliveredAt).toBe(life.state === 'delivered' ? life.updatedAt : null)
    }
  })

  it('moves its updated_at with its state, and not otherwise', () => {
    const pairs = INDEXES.map(
      (index) => [orderLife(SOURCE, index, 600), orderLife(SOURCE, index, 1200)] as const,
    )

    for (const [before, after] of pairs) {
      expect(after.updatedAt !== before.updatedAt).toBe(after.state !== before.state)
    }
    expect(pairs.some(([before, after]) => after.state !== before.state)).toBe(true)
    expect(pairs.some(([before, after]) => after.touches > before.touches)).toBe(true)
  })

  it('is not updated before it is created, nor after the present moment', () => {
    // The newest order is never older than eight seconds.
    const latest = orderCreatedAt(SOURCE, ordersBy(SOURCE, 3600) - 1) + 8

    const lives = INDEXES.map((index) => orderLife(SOURCE, index, 3600))

    expect(lives.filter(({ updatedAt, createdAt }) => updatedAt < createdAt || updatedAt > latest)).toEqual(
      [],
    )
  })

  it.each([0, 600, 5000])('has the state that filters see at tick %i', (tick) => {
    const states = INDEXES.map((index) => orderState(SOURCE, index, tick))

    expect(states).toEqual(INDEXES.map((index) => orderLife(SOURCE, index, tick).state))
    expect(new Set(states).size).toBeGreaterThanOrEqual(2)
  })

  it('changes about once in three seconds, whichever it is', () => {
    const source = { ...SOURCE, originals: 3000 }
    const all = Array.from({ length: source.originals }, (_, index) => index)

    const changed = all.filter((index) => {
      const [before, after] = [orderLife(source, index, 0), orderLife(source, index, 900)]
      return before.state !== after.state || before.touches !== after.touches
    })

    expect(changed.length).toBeGreaterThan(240)
    expect(changed.length).toBeLessThan(360)
  })
})
