import { expect, it } from 'vitest'
import { type Matchers, nextMatch } from '../../src/schedule/cron.ts'

const YEAR = 366 * 86_400_000

/** Counts the calls of all matchers. */
function countCalls(matchers: Matchers): { matchers: Matchers; calls: () => number } {
  let calls = 0
  function counted(matches: (time: number) => boolean): (time: number) => boolean {
    return (time) => {
      calls++
      return matches(time)
    }
  }
  const { day, hour, minute, second, mayBeMinute } = matchers
  return {
    matchers: {
      day: counted(day),
      hour: counted(hour),
      minute: counted(minute),
      second: counted(second),
      // It costs nothing.
      mayBeMinute,
    },
    calls: () => calls,
  }
}

/** Matches the one second from `start` on, in UTC. */
function atMoment(start: number): Matchers {
  const within = (unit: number) => (time: number) => Math.floor(time / unit) === Math.floor(start / unit)
  return {
    day: within(86_400_000),
    hour: within(3_600_000),
    minute: within(60_000),
    second: within(1000),
    mayBeMinute: () => true,
  }
}

it('finds one second of a year in few calls', () => {
  const moment = Date.parse('2026-12-24T17:42:59Z')
  const { matchers, calls } = countCalls(atMoment(moment))

  const found = nextMatch(matchers, Date.parse('2026-01-01T00:00:00Z'), Date.parse('2027-01-01T00:00:00Z'))

  expect(found).toBe(moment)
  expect(calls()).toBeLessThan(2000)
})

it('returns null for a year without a match in few calls', () => {
  const start = Date.parse('2026-01-01T00:00:00Z')
  const { matchers, calls } = countCalls(atMoment(start))

  const found = nextMatch(matchers, start, start + YEAR)

  expect(found).toBeNull()
  expect(calls()).toBeLessThan(2000)
})
