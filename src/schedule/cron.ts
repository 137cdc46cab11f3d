import { createTask, type Logger, parse, validate } from 'node-cron'

const SECOND = 1000
const MINUTE = 60 * SECOND
const DAY = 24 * 60 * MINUTE

// All zones differ from UTC by a multiple of this, before and after each change of their clocks: a local hour neither
// begins nor ends within one.
const QUARTER = 15 * MINUTE

/** How far ahead the next fire time is searched. A leap day on a given weekday can be 40 years away, but nobody asks for one. */
const SEARCHED = 400 * DAY

/** Whether a text is a cron expression (5 or 6 fields, or a word like `@daily`). A day has to match both its day of month and its day of week. */
export function isCron(text: string): boolean {
  return validate(text)
}

/**
 * Returns the first fire time (epoch milliseconds) in (`after`, `until`], or null. Local time counts: a time in an hour that a change
 * of the clocks skips does not fire on that day, and one in an hour that comes twice fires twice. Takes the longest steps that are safe.
 */
export function nextFireAfter(
  expression: string,
  timezone: string,
  after: number,
  until = after + SEARCHED,
): number | null {
  const { day, hour, minute, seconds } = matchersOf(expression, timezone)
  // A moment's local day is its day in UTC, the one before or the one after.
  const isDayNear = (time: number) => day(time) || day(time - DAY) || day(time + DAY)
  let time = startOfNext(SECOND, after)
  while (time <= until) {
    if (!isDayNear(time)) time = startOfNext(DAY, time)
    else if (!hour(time)) time = startOfNext(QUARTER, time)
    else if (!minute(time)) time = startOfNext(MINUTE, time)
    else if (!seconds.has(Math.floor(time / SECOND) % 60)) time = startOfNext(SECOND, time)
    else return time
  }
  return null
}

function startOfNext(unit: number, time: number): number {
  return (Math.floor(time / unit) + 1) * unit
}

/** The next fire times, at most `count`, within SEARCHED. */
export function nextFires(expression: string, timezone: string, after: number, count: number): number[] {
  const until = after + SEARCHED
  const times: number[] = []
  let next = nextFireAfter(expression, timezone, after, until)
  for (; next !== null && times.length < count; next = nextFireAfter(expression, timezone, next, until))
    times.push(next)
  return times
}

/** Enough for the days of a week. */
const MEASURED_FIRES = 8

/** The mean time between the next fire times of a schedule, in milliseconds; a year if it has fewer than two. */
export function periodOf(expression: string, timezone: string, now: number): number {
  const times = nextFires(expression, timezone, now, MEASURED_FIRES + 1)
  const [first, last] = [times[0], times.at(-1)]
  if (first === undefined || last === undefined || times.length < 2) return 366 * DAY
  return (last - first) / (times.length - 1)
}

/** Whether a schedule may fire in the day, hour or minute of a moment (epoch milliseconds). */
interface Matchers {
  /** Whether the moment's day in UTC is a day of the schedule, in whatever zone. */
  day(time: number): boolean
  /** Whether the moment's local day and hour are in the schedule; likewise `minute`. */
  hour(time: number): boolean
  minute(time: number): boolean
  seconds: ReadonlySet<number>
}

/** Hundreds of lists share a few schedules: making one takes 0.5 ms. */
const KNOWN = new Map<string, Matchers>()

function matchersOf(expression: string, timezone: string): Matchers {
  const name = `${timezone} ${expression}`
  const known = KNOWN.get(name) ?? createMatchers(expression, timezone)
  KNOWN.set(name, known)
  return known
}

function createMatchers(expression: string, timezone: string): Matchers {
  const fields = parse(expression)
  const { second, minute, hour, dayOfMonth, month, dayOfWeek } = fields
  const seconds = new Set(second.map(Number))
  const days = [dayOfMonth, month, dayOfWeek].flat()
  if (timezone === 'UTC' && days.every((one) => typeof one === 'number'))
    return { ...plainMatchers(fields), seconds }
  const day = `${dayOfMonth.join()} ${month.join()} ${dayOfWeek.join()}`
  return {
    day: matcherOf(`* * * ${day}`, 'UTC'),
    hour: matcherOf(`* * ${hour.join()} ${day}`, timezone),
    minute: matcherOf(`* ${minute.join()} ${hour.join()} ${day}`, timezone),
    seconds,
  }
}

/** Of plain numbers, in UTC: node-cron reads a clock by Intl, which takes 20 ms to begin with. */
function plainMatchers({
  minute,
  hour,
  dayOfMonth,
  month,
  dayOfWeek,
}: ReturnType<typeof parse>): Omit<Matchers, 'seconds'> {
  const day = (time: number) => {
    const date = new Date(time)
    return (
      month.includes(date.getUTCMonth() + 1) &&
      dayOfMonth.includes(date.getUTCDate()) &&
      dayOfWeek.includes(date.getUTCDay())
    )
  }
  const inHour = (time: number) => day(time) && hour.includes(new Date(time).getUTCHours())
  return {
    day,
    hour: inHour,
    minute: (time) => inHour(time) && minute.includes(new Date(time).getUTCMinutes()),
  }
}

const SILENT: Logger = { info() {}, warn() {}, error() {}, debug() {} }

function matcherOf(expression: string, timezone: string): (time: number) => boolean {
  const task = createTask(expression, () => {}, { timezone, logger: SILENT })
  // node-cron lists all tasks for ever; a destroyed one has left the list and still matches.
  void task.destroy()
  return (time) => task.match(new Date(time))
}
