import { expect, it } from 'vitest'
import { type Matchers, nextMatch } from '../../src/schedule/next-match.ts'

const YEAR = 366 * 86_400_000

/** Counts how often anything is asked. */
function counting(matchers: Matchers): { matchers: Matchers; asked: () => number } {
  let asked = 0
  function counted(matches: (time: number) => boolean): (time: number) => boolean {
    return (time) => {
      asked++
      return matches(time)
    }
  }
  const { day, hour, minute, second } = matchers
  return {
    matchers: { day: counted(day), hour: counted(hour), minute: counted(minute), second: counted(second) },
    asked: () => asked,
  }
}

/** In UTC, from `start` on for one second. */
function atMoment(start: number): Matchers {
  const within = (unit: number) => (time: number) => Math.floor(time / unit) === Math.floor(start / unit)
  return { day: within(86_400_000), hour: within(3_600_000), minute: within(60_000), second: within(1000) }
}

it('finds one second of a year, asking little', () => {
  const moment = Date.parse('2026-12-24T17:42:59Z')
  const { matchers, asked } = counting(atMoment(moment))

  const found = nextMatch(matchers, Date.parse('2026-01-01T00:00:00Z'), Date.parse('2027-01-01T00:00:00Z'))

  expect(found).toBe(moment)
  expect(asked()).toBeLessThan(2000)
})

it('tells that a year has no match, asking little', () => {
  const start = Date.parse('2026-01-01T00:00:00Z')
  const { matchers, asked } = counting(atMoment(start))

  const found = nextMatch(matchers, start, start + YEAR)

  expect(found).toBeNull()
  expect(asked()).toBeLessThan(2000)
})
