import { createTask, type Logger, parse, validate } from 'node-cron'

const SECOND = 1000
const MINUTE = 60 * SECOND
const DAY = 24 * 60 * MINUTE

// All zones differ from UTC by a multiple of this, before and after each change of their clocks: a local hour neither begins nor ends within one.
const QUARTER = 15 * MINUTE

/** How far ahead the next fire time is searched: a leap day is up to four years away. */
const SEARCHED = 1500 * DAY

/** Whether a text is a cron expression (5 or 6 fields, or a word like `@daily`). Where both a day of month and a day of week are given, either will do, as in cron. */
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
  const { day, hour, minute, localHour, hours, minutesOfQuarter, seconds } = matchersOf(expression, timezone)
  // A moment's local day is its day in UTC, the one before or the one after.
  const isDayNear = (time: number) => day(time) || day(time - DAY) || day(time + DAY)
  let time = startOfNext(SECOND, after)
  // What costs nothing first: one match of node-cron's takes 0.05 ms.
  while (time <= until) {
    if (!isDayNear(time)) time = startOfNext(DAY, time)
    else if (!minutesOfQuarter.has(Math.floor(time / MINUTE) % 15)) time = startOfNext(MINUTE, time)
    else if (!seconds.has(Math.floor(time / SECOND) % 60)) time = startOfNext(SECOND, time)
    else if (!(hours.has(localHour(time)) && hour(time))) time = startOfNext(QUARTER, time)
    else if (!minute(time)) time = startOfNext(MINUTE, time)
    else return time
  }
  return null
}

function startOfNext(unit: number, time: number): number {
  return (Math.floor(time / unit) + 1) * unit
}

/** The next fire times, at most `count`. */
export function nextFires(expression: string, timezone: string, after: number, count: number): number[] {
  const next = count > 0 ? nextFireAfter(expression, timezone, after) : null
  return next === null ? [] : [next, ...nextFires(expression, timezone, next, count - 1)]
}

/** Whether a schedule may fire in the day (of UTC, in whatever zone), in the local hour, and in the local minute of a moment. */
interface Matchers extends Record<'day' | 'hour' | 'minute', (time: number) => boolean> {
  localHour: (time: number) => number
  hours: ReadonlySet<number>
  /** The remainders by 15 of its minutes, the same in all zones. */
  minutesOfQuarter: ReadonlySet<number>
  seconds: ReadonlySet<number>
}

/** Hundreds of lists share a few schedules: making one takes 0.5 ms. */
const KNOWN = new Map<string, Matchers>()

function matchersOf(expression: string, timezone: string): Matchers {
  const name = `${timezone} ${expression}`
  const known = KNOWN.get(name)
  if (known) return known
  const { second, minute, hour, dayOfMonth, month, dayOfWeek } = parse(expression)
  const days = [dayOfMonth, month, dayOfWeek].map((field) => field.join())
  const [typedDay, , typedWeekday] = expression.trim().split(/\s+/).slice(-3)
  // As in cron, what begins with a star names no days: `*/2` is not either of two.
  const isEither = [typedDay, typedWeekday].every((field) => field !== undefined && !/^[*?@]/.test(field))
  const either = isEither
    ? [
        [days[0], days[1], '*'],
        ['*', days[1], days[2]],
      ]
    : [days]
  /** node-cron itself takes days that match both fields. */
  const matches = (time: string, zone: string) => {
    const matchers = either.map((day) => matcherOf(`${time} ${day.join(' ')}`, zone))
    return (at: number) => matchers.some((matcher) => matcher(at))
  }
  const made = {
    day: onceADay(matches('* * *', 'UTC')),
    hour: matches(`* * ${hour.join()}`, timezone),
    minute: matches(`* ${minute.join()} ${hour.join()}`, timezone),
    localHour: hourIn(timezone),
    hours: new Set(hour.map(Number)),
    minutesOfQuarter: new Set(minute.map(Number).map((one) => one % 15)),
    seconds: new Set(second.map(Number)),
  }
  KNOWN.set(name, made)
  return made
}

/** Remembers the answer for each day. */
function onceADay(matches: (time: number) => boolean): (time: number) => boolean {
  const known = new Map<number, boolean>()
  return (time) => {
    const day = Math.floor(time / DAY)
    const answer = known.get(day) ?? matches(time)
    known.set(day, answer)
    return answer
  }
}

function hourIn(timeZone: string): (time: number) => number {
  const format = new Intl.DateTimeFormat('en', { timeZone, hour: 'numeric', hourCycle: 'h23' })
  return (time) => Number(format.format(time))
}

const SILENT: Logger = { info() {}, warn() {}, error() {}, debug() {} }

function matcherOf(expression: string, timezone: string): (time: number) => boolean {
  const task = createTask(expression, () => {}, { timezone, logger: SILENT })
  // node-cron lists all tasks for ever; a destroyed one has left the list and still matches.
  void task.destroy()
  return (time) => task.match(new Date(time))
}
