import { describe, expect, it } from 'vitest'
import { LINES, quantile } from './lines.ts'
import { measureFreshness } from './measure.ts'

/** A small list for a day: what is promised of these was measured on more. */
const SMALL = { rows: 5000, arrivals: 1, life: 'orders', removals: 'oldest' } as const

describe('a list that is refreshed each five minutes', () => {
  it.each([
    ['first', 5, 50],
    ['last', 5, 50],
    ['by update', 5, 50],
    ['random', 60, 100],
  ] as const)(
    'shows new rows in time, within its share, and claims what is true: %s',
    (order, late, wrong) => {
      const measured = measureFreshness({ lists: [{ ...SMALL, order }], limit: 60, days: 1 }, 1)

      expect(quantile(measured.newAges.flat(), 0.95)).toBeLessThanOrEqual(late)
      expect(measured.wrongRows).toBeLessThan(wrong)
      expect(measured.fullestHour).toBeLessThan(1.05)
      expect(measured.untrue).toBe(0)
      expect(measured.refreshes).toBeGreaterThan(500)
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

  const { newAges, fullestHour } = measureFreshness({ lists, limit: 60, days: 1 }, 1)

  for (const ages of newAges) expect(Math.max(0, ...ages)).toBeLessThan(60)
  expect(fullestHour).toBeLessThan(1.05)
})

it.runIf(process.env.LONG).each(Object.entries(LINES))(
  '10,000 refreshes claim nothing that is not true, and keep to their share: %s',
  { timeout: 3_600_000 },
  (_name, line) => {
    for (let [seed, refreshes] = [1, 0]; refreshes < 10_000; seed++) {
      const measured = measureFreshness(line, seed)
      refreshes += measured.refreshes
      expect(measured.untrue).toBe(0)
      expect(measured.fullestHour).toBeLessThan(1.05)
    }
  },
)
