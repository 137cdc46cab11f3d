import { expect, it } from 'vitest'
import { nextFireAfter } from '../../src/schedule/cron.ts'

const YEAR = { start: Date.parse('2026-01-01T00:00:00Z') - 1, end: Date.parse('2027-01-01T00:00:00Z') - 1 }

/** All fire times within the year, and how the clocks of the zone show them. */
function yearOf(expression: string, timezone: string) {
  const clock = new Intl.DateTimeFormat('en-GB', {
    timeZone: timezone,
    weekday: 'short',
    hour: '2-digit',
    minute: '2-digit',
    hourCycle: 'h23',
  })
  const shown = new Set<string>()
  let count = 0
  let time = nextFireAfter(expression, timezone, YEAR.start, YEAR.end)
  for (; time !== null; time = nextFireAfter(expression, timezone, time, YEAR.end)) {
    shown.add(clock.format(time))
    count++
  }
  return { count, texts: shown.size }
}

// `texts`: so many different weekdays and local times.
it.each([
  // Skipped on 29 March, twice on 25 October.
  ['an hour that is skipped once and comes twice once', '30 2 * * *', 'Europe/Paris', 365, 7],
  ['a time of working days', '0 9 * * 1-5', 'America/New_York', 261, 5],
  ['the first of a month', '0 0 1 * *', 'Pacific/Chatham', 12, 7],
])('fires, in a simulated year, as often as %s comes', (_, expression, timezone, count, texts) => {
  const year = yearOf(expression, timezone)

  expect(year).toMatchObject({ count, texts })
})
