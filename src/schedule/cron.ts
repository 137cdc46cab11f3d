import { printable } from '../text.ts'

const SECOND = 1000
const MINUTE = 60 * SECOND
const QUARTER = 15 * MINUTE
const DAY = 24 * 60 * MINUTE

/** Leap days fall on every weekday within 28 years: a schedule that does not fire in these never does. */
const CYCLE = { start: Date.UTC(2001, 0, 1), days: 28 * 365 + 7 }

/** The local times at which a schedule fires. Of a `Date` the UTC fields are read here: they hold a local time. */
interface Schedule {
  seconds: readonly number[]
  minutes: ReadonlySet<number>
  hours: ReadonlySet<number>
  isDay: IsDay
}

type IsDay = (day: Date) => boolean

/**
 * Returns what is wrong with a cron expression (5 or 6 fields, or a word like `@daily`), or null. One that can never
 * fire (30 February) is wrong, too. A day must match both its day of month and its day of week.
 */
export function checkCron(expression: string): string | null {
  const schedule = parseCron(expression)
  return typeof schedule === 'string' ? schedule : null
}

const WORDS: Readonly<Record<string, string>> = {
  '@yearly': '0 0 1 1 *',
  '@annually': '0 0 1 1 *',
  '@monthly': '0 0 1 * *',
  '@weekly': '0 0 * * 0',
  '@daily': '0 0 * * *',
  '@midnight': '0 0 * * *',
  '@hourly': '0 * * * *',
}

const MONTHS = 'january february march april may june july august september october november december'.split(
  ' ',
)
const WEEKDAYS = 'sunday monday tuesday wednesday thursday friday saturday'.split(' ')

interface Field {
  name: string
  least: number
  most: number
  /** How many values there are: Sunday is 0 and 7. */
  size: number
  names?: readonly string[]
  /** Reads a part that means another day in each month; null: it means none. */
  special?: (part: string) => IsDay | null
}

const FIELDS: readonly Field[] = [
  { name: 'second', least: 0, most: 59, size: 60 },
  { name: 'minute', least: 0, most: 59, size: 60 },
  { name: 'hour', least: 0, most: 23, size: 24 },
  { name: 'day of month', least: 1, most: 31, size: 31, special: dayOfMonth },
  { name: 'month', least: 1, most: 12, size: 12, names: MONTHS },
  { name: 'day of week', least: 0, most: 7, size: 7, names: WEEKDAYS, special: dayOfWeek },
]

/** Returns the schedule, or what is wrong with the expression. */
function parseCron(expression: string): Schedule | string {
  const text = expression.replace(/^ +| +$/g, '')
  const texts = (WORDS[text.toLowerCase()] ?? text).split(/ +/)
  if (texts.length !== 5 && texts.length !== 6) return `it has ${fieldCount(texts)}, not 5 or 6`
  if (texts.length === 5) texts.unshift('0')
  const parsed = FIELDS.map((field, index) => readField(texts[index] ?? '', field))
  const wrong = parsed.indexOf(null)
  if (wrong >= 0) return `its ${FIELDS[wrong]?.name} field cannot be "${printable(texts[wrong] ?? '', 60)}"`
  const [seconds, minutes, hours, days, months, weekdays] = parsed.flatMap((field) => field ?? [])
  if (!seconds || !minutes || !hours || !days || !months || !weekdays) throw new Error('Expected six fields')
  const isDay = (day: Date) =>
    months.values.has(day.getUTCMonth() + 1) &&
    holds(days, day.getUTCDate(), day) &&
    holds(weekdays, day.getUTCDay(), day)
  if (!everFires(isDay)) return 'no such day exists, so it would never fire'
  const inOrder = [...seconds.values].toSorted((a, b) => a - b)
  return { seconds: inOrder, minutes: minutes.values, hours: hours.values, isDay }
}

function everFires(isDay: IsDay): boolean {
  for (let index = 0; index < CYCLE.days; index++) {
    if (isDay(new Date(CYCLE.start + index * DAY))) return true
  }
  return false
}

function fieldCount(texts: readonly string[]): string {
  if (texts[0] === '') return 'no fields'
  return texts.length === 1 ? '1 field' : `${texts.length} fields`
}

/** What a field allows. */
interface Allowed {
  values: Set<number>
  special: IsDay[]
}

function holds({ values, special }: Allowed, value: number, day: Date): boolean {
  return values.has(value) || special.some((isDay) => isDay(day))
}

/** Returns null for a text that is wrong. */
function readField(text: string, field: Field): Allowed | null {
  const allowed: Allowed = { values: new Set(), special: [] }
  if (text === '?' && field.special) return readField('*', field)
  for (const part of text.split(',')) {
    const isDay = field.special?.(part)
    if (isDay) allowed.special.push(isDay)
    else if (!addValues(allowed.values, part, field)) return null
  }
  return allowed
}

const PART = /^(?:\*|([\da-z]+)(?:-([\da-z]+))?)(?:\/(\d+))?$/i

/** Adds the values of `*`, a value or a range, which may go beyond the end (`fri-mon`); false for anything else. */
function addValues(values: Set<number>, part: string, field: Field): boolean {
  const { least, most, size } = field
  const [whole, from, to, by = '1'] = PART.exec(part) ?? []
  // A step behind a single value can be read in two ways.
  if (whole === undefined || Number(by) < 1 || (from !== undefined && to === undefined && part.includes('/')))
    return false
  const first = from === undefined ? least : numberOf(from, field)
  const last = from === undefined ? most : to === undefined ? first : numberOf(to, field)
  if (first === null || last === null) return false
  const end = first <= last ? last : last + size
  for (let value = first; value <= end; value += Number(by)) values.add(least + ((value - least) % size))
  return true
}

function numberOf(text: string, { least, most, names = [] }: Field): number | null {
  const word = text.toLowerCase()
  const named = names.findIndex((name) => name === word || name.slice(0, 3) === word)
  const value = named >= 0 ? least + named : /^\d+$/.test(text) ? Number(text) : Number.NaN
  return least <= value && value <= most ? value : null
}

/** `L` and `L-3`: the last day of the month and the third before it; `15W` and `LW`: the weekday nearest to a day, in its month. */
function dayOfMonth(part: string): IsDay | null {
  const [isLast, before = '0'] = /^L(?:-([1-9]|[12]\d|30))?$/i.exec(part) ?? []
  if (isLast !== undefined) return (day) => day.getUTCDate() === lastDay(day) - Number(before)
  const [isNearest, target = ''] = /^(L|[12]?\d|3[01])W$/i.exec(part) ?? []
  if (isNearest === undefined || target === '0') return null
  return (day) => day.getUTCDate() === nearestWeekday(day, /l/i.test(target) ? lastDay(day) : Number(target))
}

function lastDay(day: Date): number {
  return new Date(Date.UTC(day.getUTCFullYear(), day.getUTCMonth() + 1, 0)).getUTCDate()
}

/** The day from Monday to Friday that is nearest to a day of the month of `day`; null if the month has no such day. */
function nearestWeekday(day: Date, target: number): number | null {
  const last = lastDay(day)
  if (target > last) return null
  const weekday = new Date(Date.UTC(day.getUTCFullYear(), day.getUTCMonth(), target)).getUTCDay()
  if (weekday === 6) return target === 1 ? 3 : target - 1
  if (weekday === 0) return target === last ? target - 2 : target + 1
  return target
}

/** `friL`: the last Friday of the month; `fri#2`: the second one. */
function dayOfWeek(part: string): IsDay | null {
  const [, name, sign = ''] = /^([a-z]{3,}?|\d)(L|#[1-5])$/i.exec(part) ?? []
  const field = FIELDS[5]
  const weekday = name === undefined || !field ? null : numberOf(name, field)
  if (weekday === null) return null
  const isInWeek = (day: Date) =>
    sign.startsWith('#')
      ? Math.ceil(day.getUTCDate() / 7) === Number(sign.slice(1))
      : day.getUTCDate() > lastDay(day) - 7
  return (day) => day.getUTCDay() === weekday % 7 && isInWeek(day)
}

/** Schedules that were parsed: hundreds of jobs share a few. */
const KNOWN = new Map<string, Schedule>()

function scheduleOf(expression: string): Schedule {
  const known = KNOWN.get(expression)
  if (known) return known
  const parsed = parseCron(expression)
  if (typeof parsed === 'string') throw new Error(`Expected a cron expression: ${parsed}`)
  KNOWN.set(expression, parsed)
  return parsed
}

/** How far ahead the next fire time is searched. A leap day on a given weekday can be 40 years away, but nobody asks for one. */
const SEARCHED = 400 * DAY

/**
 * Returns the first fire time (epoch milliseconds) in (`after`, `until`], or null. Local time counts: a time in an hour that a change
 * of the clocks skips does not fire on that day, and one in an hour that comes twice fires twice. `expression` has passed `checkCron`;
 * throws for an unknown time zone.
 */
export function nextFireAfter(
  expression: string,
  timezone: string,
  after: number,
  until = after + SEARCHED,
): number | null {
  const schedule = scheduleOf(expression)
  const offsetAt = offsetsOf(timezone)
  for (let day = Math.floor(after / DAY) * DAY; day <= until; day += DAY) {
    if (!isDayNear(schedule, day)) continue
    const [before, behind] = [offsetAt(day), offsetAt(day + DAY)]
    for (let quarter = day; quarter < day + DAY; quarter += QUARTER) {
      // All offsets are multiples of a quarter, before and after each change of the clocks: within one, local time runs evenly.
      const local = quarter + (before === behind ? before : offsetAt(quarter))
      const fire = firstInQuarter(schedule, new Date(local), after + local - quarter)
      if (fire !== null) return fire - local + quarter <= until ? fire - local + quarter : null
    }
  }
  return null
}

/** Whether a day in UTC has a time whose local day is one of the schedule: the same day, the one before or the one after. */
function isDayNear({ isDay }: Schedule, day: number): boolean {
  return [day - DAY, day, day + DAY].some((time) => isDay(new Date(time)))
}

/** The first fire time after `after` in the quarter of an hour that begins at `start`; both and the result are local times. */
function firstInQuarter(
  { isDay, hours, minutes, seconds }: Schedule,
  start: Date,
  after: number,
): number | null {
  if (!hours.has(start.getUTCHours()) || !isDay(start)) return null
  for (let minute = start.getTime(); minute < start.getTime() + QUARTER; minute += MINUTE) {
    if (!minutes.has(new Date(minute).getUTCMinutes())) continue
    const second = seconds.find((value) => minute + value * SECOND > after)
    if (second !== undefined) return minute + second * SECOND
  }
  return null
}

const ZONES = new Map<string, Intl.DateTimeFormat>()

/** Returns a function of a whole quarter of an hour: how far the local time is ahead of UTC, in milliseconds. */
function offsetsOf(timeZone: string): (time: number) => number {
  // Saves the 12 ms that the first DateTimeFormat takes.
  if (timeZone === 'UTC') return () => 0
  const format =
    ZONES.get(timeZone) ??
    new Intl.DateTimeFormat('sv-SE', { timeZone, dateStyle: 'short', timeStyle: 'medium' })
  ZONES.set(timeZone, format)
  return (time) => Date.parse(`${format.format(time).replace(' ', 'T')}Z`) - time
}

/** The next fire times, at most `count`. */
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

/** The mean time between the next fire times of a checked schedule, in milliseconds; a year if it has fewer than two. */
export function periodOf(expression: string, timezone: string, now: number): number {
  const times = nextFires(expression, timezone, now, MEASURED_FIRES + 1)
  const [first, last] = [times[0], times.at(-1)]
  if (first === undefined || last === undefined || times.length < 2) return 366 * DAY
  return (last - first) / (times.length - 1)
}
