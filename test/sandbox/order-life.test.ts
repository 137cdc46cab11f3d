import { describe, expect, it } from 'vitest'
import {
  type OrderSource,
  openingOf,
  orderCreatedAt,
  orderLife,
  orderState,
  ordersBy,
} from '../../src/sandbox/items/order-life.ts'

const LIVE: OrderSource = { key: 12_345, originals: 200, establishments: 5, live: true }
const STILL: OrderSource = { ...LIVE, live: false }
const STEPS = ['pending', 'paid', 'shipped', 'delivered']
const MINUTE = 60
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR
const INDEXES = Array.from({ length: 260 }, (_, index) => index)
const MANY = Array.from({ length: 4000 }, (_, index) => index)

/** Ascending: seconds between the creation of orders and the moment at which each was first in this state. */
function agesAt(state: string): number[] {
  return MANY.map((index) => orderLife({ ...LIVE, originals: 0 }, index, 1000 * DAY))
    .filter((life) => life.state === state)
    .map(({ createdAt, updatedAt }) => updatedAt - createdAt)
    .toSorted((a, b) => a - b)
}

describe('ordersBy', () => {
  it('is the number of originals at tick 0, and always of a list that does not live', () => {
    expect(ordersBy(LIVE, 0)).toBe(200)
    expect(ordersBy(STILL, 5000)).toBe(200)
  })

  it('grows by one at a time, and by three a minute', () => {
    const counts = Array.from({ length: 1201 }, (_, tick) => ordersBy(LIVE, tick))

    const steps = new Set(counts.slice(1).map((count, at) => count - (counts[at] ?? 0)))
    expect(steps).toEqual(new Set([0, 1]))
    expect(counts[1200]).toBe(200 + 60)
  })

  it('counts the orders that were created before', () => {
    for (let tick = 0; tick <= 1200; tick++) {
      const created = INDEXES.filter((index) => orderCreatedAt(LIVE, index) < openingOf(LIVE) + tick)
      expect(ordersBy(LIVE, tick)).toBe(created.length)
    }
  })
})

describe.each([LIVE, STILL])('orderCreatedAt (live: $live)', (source) => {
  it('rises with the index, from the originals to the new ones', () => {
    const moments = INDEXES.map((index) => orderCreatedAt(source, index))

    expect(moments.every((moment, at) => at === 0 || moment > (moments[at - 1] ?? 0))).toBe(true)
  })

  it('does not depend on how many orders there are', () => {
    expect(orderCreatedAt({ ...source, originals: 100_000 }, 150)).toBe(orderCreatedAt(source, 150))
  })
})

describe('an order', () => {
  it.each(INDEXES.filter((index) => index % 13 === 0))('%i only moves forward', (index) => {
    const lives = Array.from({ length: 80 }, (_, step) => orderLife(LIVE, index, 6000 + step ** 4))

    for (const [at, life] of lives.entries()) {
      const before = lives[at - 1] ?? life
      expect([before.state, ...STEPS.slice(STEPS.indexOf(before.state)), 'cancelled']).toContain(life.state)
      expect(life.updatedAt).toBeGreaterThanOrEqual(before.updatedAt)
      expect(life.touches).toBeGreaterThanOrEqual(before.touches)
      expect(life.deliveredAt).toBe(life.state === 'delivered' ? life.updatedAt : null)
    }
  })

  it('moves its updated_at with its state, and not otherwise', () => {
    const lives = [HOUR, 2 * HOUR, DAY, 4 * DAY, 30 * DAY].map((tick) =>
      INDEXES.map((index) => orderLife(LIVE, index, tick)),
    )
    const pairs = lives
      .slice(1)
      .flatMap((later, at) => later.map((after, index) => ({ before: lives[at]?.[index] ?? after, after })))

    for (const { before, after } of pairs) {
      expect(after.updatedAt !== before.updatedAt).toBe(after.state !== before.state)
    }
    const moved = pairs.filter(({ before, after }) => after.state !== before.state).length
    const touched = pairs.filter(({ before, after }) => after.touches > before.touches).length
    expect(touched).toBeGreaterThan(0)
    expect(moved).toBeGreaterThan(touched)
  })

  it.each([0, 90, HOUR, DAY])('is not updated before it is created, nor after tick %i', (tick) => {
    const lives = INDEXES.slice(0, ordersBy(LIVE, tick)).map((index) => orderLife(LIVE, index, tick))

    const now = openingOf(LIVE) + tick
    expect(lives.filter(({ updatedAt, createdAt }) => updatedAt < createdAt || updatedAt > now)).toEqual([])
  })

  it.each([0, HOUR, 2 * DAY, 400 * DAY])('has the state that filters see at tick %i', (tick) => {
    for (const source of [LIVE, STILL]) {
      const states = INDEXES.map((index) => orderState(source, index, tick))

      expect(states).toEqual(INDEXES.map((index) => orderLife(source, index, tick).state))
      expect(new Set(states).size).toBeGreaterThanOrEqual(2)
    }
  })

  it.each([
    ['paid', 5 * MINUTE],
    ['shipped', HOUR],
    ['delivered', DAY],
  ])('is %s after a time that is spread around its median', (state, median) => {
    const ages = agesAt(state)

    const quarters = [0.25, 0.5, 0.75].map((part) => (ages[Math.floor(part * ages.length)] ?? 0) / median)
    expect(quarters[0]).toBeLessThan(0.8)
    expect(quarters[1]).toBeGreaterThan(0.8)
    expect(quarters[1]).toBeLessThan(1.35)
    expect(quarters[2]).toBeGreaterThan(1.4)
  })

  it('is touched days later, or never', () => {
    const source = { ...LIVE, originals: MANY.length }
    const shareAt = (tick: number) =>
      MANY.filter((index) => orderLife(source, index, tick).touches > 0).length / MANY.length

    expect(shareAt(0)).toBeLessThan(0.05)
    expect(shareAt(3 * DAY)).toBeGreaterThan(0.2)
    expect(shareAt(1000 * DAY)).toBeLessThan(0.65)
  })

  it('has its last state at once in a list that does not live, and no touches', () => {
    const atLast = INDEXES.map((index) => orderState(LIVE, index, 1000 * DAY))

    expect(INDEXES.map((index) => orderState(STILL, index, 0))).toEqual(atLast)
    expect(INDEXES.some((index) => orderLife(STILL, index, 0).touches > 0)).toBe(false)
  })

  it('changes the most while it is young', () => {
    const source = { ...LIVE, originals: MANY.length }
    const changed = MANY.filter((index) => {
      const [before, after] = [orderLife(source, index, 0), orderLife(source, index, 10 * MINUTE)]
      return before.state !== after.state || before.touches !== after.touches
    })

    const young = changed.filter((index) => index >= 3500)
    const old = changed.filter((index) => index < 2000)
    expect(old.length).toBeGreaterThan(0)
    expect(young.length).toBeGreaterThan(old.length)
  })
})
