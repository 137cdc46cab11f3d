import { nextFireAfter } from '../schedule/cron.ts'
import { counted } from '../text.ts'
import { type Finding, ok, warn } from './finding.ts'

const YEARS_MS = 400 * 86_400_000

/** The next times of each schedule, by the clock of its time zone. */
export function checkSchedules(
  {
    organizations,
    timezone,
  }: { organizations: readonly { name: string; schedule: string }[]; timezone: string },
  now: number,
): Finding[] {
  const bySchedule = Map.groupBy(organizations, ({ schedule }) => schedule)
  return Array.from(bySchedule, ([schedule, users]) => {
    const [first] = users
    const who = users.length === 1 ? (first?.name ?? '') : counted(users.length, 'organization')
    const times = nextTimes(schedule, timezone, now, 3)
    const text = `"${schedule}" of ${who}`
    if (times.length === 0)
      return warn('schedule', `${text} does not come within a year`, 'correct it, if that is not meant')
    return ok(
      'schedule',
      `${text}: next ${times.map((time) => localTime(time, timezone)).join(', ')} (${timezone})`,
    )
  })
}

function nextTimes(schedule: string, timezone: string, after: number, count: number): number[] {
  const times: number[] = []
  for (let time = after; times.length < count; ) {
    const next = nextFireAfter(schedule, timezone, time, after + YEARS_MS)
    if (next === null) return times
    times.push(next)
    time = next
  }
  return times
}

function localTime(time: number, timeZone: string): string {
  const format = { timeZone, dateStyle: 'short', timeStyle: 'medium' } as const
  return new Intl.DateTimeFormat('sv-SE', format).format(time)
}

/** The shortest time between two of the next runs, in minutes; null if there are not two. */
export function minutesBetween(schedule: string, timezone: string, now: number): number | null {
  const times = nextTimes(schedule, timezone, now, 5)
  const gaps = times.slice(1).map((time, index) => time - (times[index] ?? time))
  return gaps.length === 0 ? null : Math.min(...gaps) / 60_000
}
