import { describe, expect, it } from 'vitest'
import { createData } from '../../src/sandbox/data.ts'
import { createFinder, type Filters } from '../../src/sandbox/selection.ts'

const { orders, establishments } = createData({
  seed: 3,
  organization: 0,
  orders: 300,
  establishments: 40,
  live: true,
})
const SOME_DAY = orders.createdAt(100)

function updatedOf(index: number, tick: number): number {
  return Date.parse(String(orders.itemAt(index, tick).updated_at)) / 1000
}

/** The same, by checking every item. */
function findSlowly({ states, createdFrom, updatedAfter }: Filters, tick: number): number[] {
  const deleted = new Set(orders.deletedAt(tick))
  return Array.from({ length: orders.countAt(tick) }, (_, index) => index)
    .filter((index) => !deleted.has(index))
    .filter((index) => states === null || states.includes(String(orders.itemAt(index, tick).state)))
    .filter((index) => createdFrom === null || orders.createdAt(index) >= createdFrom)
    .filter((index) => updatedAfter === null || updatedOf(index, tick) > updatedAfter)
}

describe('createFinder', () => {
  const find = createFinder(orders)

  describe.each([0, 4000, 90_000, 4000])('at tick %i', (tick) => {
    it.each<Filters>([
      { states: null, createdFrom: null, updatedAfter: null },
      { states: ['paid'], createdFrom: null, updatedAfter: null },
      { states: ['paid', 'cancelled'], createdFrom: null, updatedAfter: null },
      { states: ['unheard of'], createdFrom: null, updatedAfter: null },
      { states: null, createdFrom: SOME_DAY, updatedAfter: null },
      { states: null, createdFrom: SOME_DAY + 1, updatedAfter: null },
      { states: ['delivered'], createdFrom: SOME_DAY, updatedAfter: null },
      { states: null, createdFrom: 9e9, updatedAfter: null },
      { states: null, createdFrom: null, updatedAfter: SOME_DAY },
      { states: ['paid'], createdFrom: SOME_DAY, updatedAfter: SOME_DAY + 9000 },
    ])('finds what passes %o', (filters) => {
      const { total, indexAt } = find(filters, tick)

      expect(Array.from({ length: total }, (_, position) => indexAt(position))).toEqual(
        findSlowly(filters, tick),
      )
    })
  })

  it('ignores a state where items have none', () => {
    expect(
      createFinder(establishments)({ states: ['paid'], createdFrom: null, updatedAfter: null }, 0).total,
    ).toBe(40)
  })

  it('answers correctly after more filters than it remembers', () => {
    const states = ['pending', 'paid', 'shipped', 'delivered', 'cancelled']
    const filters = states.flatMap((one) =>
      states.map((other) => ({ states: [one, other], createdFrom: null, updatedAfter: null })),
    )

    const totals = [...filters, ...filters].map((filter) => find(filter, 0).total)

    expect(totals).toEqual([...filters, ...filters].map((filter) => findSlowly(filter, 0).length))
  })
})
