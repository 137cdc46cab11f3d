import { describe, expect, it } from 'vitest'
import { LINES, quantile } from './lines.ts'
import { measureFreshness } from './measure.ts'

/** A small list for a day: what is promised of these was measured on more. */
const SMALL = { rows: 5000, arrivals: 1, life: 'orders', removals: 'oldest' } as const

describe('a list that is refreshed each five minutes', () => {
  it.each([
    { order: 'first', killed: 0 },
    { order: 'last', killed: 0.2 },
    { order: 'by update', killed: 0 },
    { order: 'random', killed: 0 },
  ] as const)(
    'shows new rows in time, within its share, and claims what is true: $order, $killed',
    ({ order, killed }) => {
      const measured = measureFreshness({ lists: [{ ...SMALL, order }], limit: 60, killed, days: 1 }, 1)

      expect(quantile(measured.newAges, 0.95)).toBeLessThanOrEqual(order === 'random' ? 60 : 5)
      expect(measured.wrongRows).toBeLessThan(order === 'random' ? 100 : 50)
      expect(measured.fullestHour).toBeLessThan(1.05)
      expect({ untrue: measured.untrue, refreshes: measured.refreshes > 500 }).toEqual({
        untrue: 0,
        refreshes: true,
      })
    },
  )
})

it('lists of one token are left out by none of the others, though the share does not carry them all', () => {
  const lists = Array.from({ length: 20 }, (_, index) => ({
    ...SMALL,
    order: 'first' as const,
    rows: 200 + 100 * index,
    arrivals: index === 0 ? 0.001 : 0.1,
  }))

  const measured = measureFreshness({ lists, limit: 60, days: 1 }, 1)

  for (const { newAges } of measured.lists) expect(Math.max(0, ...newAges)).toBeLessThan(60)
  expect(measured.fullestHour).toBeLessThan(1.05)
})

it.runIf(process.env.LONG)(
  '10,000 refreshes of each line claim nothing that is not true',
  { timeout: 3_600_000 },
  () => {
    for (const [name, line] of Object.entries(LINES)) {
      let refreshes = 0
      let untrue = 0
      for (let seed = 1; refreshes < 10_000; seed++) {
        const measured = measureFreshness(line, seed)
        refreshes += measured.refreshes
        untrue += measured.untrue
      }
      expect({ name, untrue }).toEqual({ name, untrue: 0 })
    }
  },
)
