import { createRequire } from 'node:module'
import type { CronFieldError, Logger, ParsedFields } from 'node-cron'

// Loaded where the first schedule needs it: every command checks the schedules, and most are right at first sight. Not import(),
// since the rules of the configuration are synchronous.
const require = createRequire(import.meta.url)
const nodeCron = () => require('node-cron') as typeof import('node-cron')

const SECOND = 1000
const MINUTE = 60 * SECOND
const DAY = 24 * 60 * MINUTE
// Leap days fall on every weekday within 28 years: a schedule that does not fire in these never does.
const CYCLE = { start: Date.UTC(2001, 0, 1), days: 28 * 365 + 7 }

/** Hundreds of jobs share a few schedules: building one takes 0.5 ms, and each search some more. */
const KNOWN = new Map<string, KnownSchedule>()

const NEVER_FIRES = 'no such day exists, so it would never fire'
const SILENT: Logger = { info() {}, warn() {}, error() {}, debug() {} }

/** Returns what node-cron finds wrong: a field with its text, or a whole phrase; null when nothing is. */
export function findCronFault(expression: string): { field: string; text: string } | string | null {
  const { errors } = nodeCron().validateDetailed(expression)
  if (errors[0] !== undefined) return faultOf(errors[0])
  return everFires(expression) ? null : NEVER_FIRES
}

function faultOf({ field, value: text = '' }: CronFieldError): { field: string; text: string } | string {
  if (field === 'expression') return 'it has a character that means nothing there'
  // node-cron also blames this field for a day that only the named months lack.
  if (field === 'dayOfMonth' && nodeCron().validateDetailed(`0 0 ${text} * *`).valid) return NEVER_FIRES
  const names: Record<string, string> = { dayOfMonth: 'day of month', dayOfWeek: 'day of week' }
  return { field: names[field] ?? field, text }
}

function everFires(expression: string): boolean {
  const { day } = createMatchers(expression, 'UTC')
  for (let index = 0; index < CYCLE.days; index++) if (day(CYCLE.start + index * DAY)) return true
  return false
}

/** How far ahead the next fire time is searched. A leap day on a given weekday can be 40 years away, but nobody asks for one. */
const SEARCHED = 400 * DAY

/**
 * Returns the first fire time (epoch milliseconds) in (`after`, `until`], or null. Local time counts: a time in an hour that a change
 * of the clocks skips does not fire on that day, and one in an hour that comes twice fires twice. `expression` has passed `checkCron`
 * (check-cron.ts). Throws for an unknown time zone.
 */
export function nextFireAfter(
  expression: string,
  timezone: string,
  after: number,
  until = after + SEARCHED,
): number | null {
  const { matchers, last } = scheduleOf(expression, timezone)
  // The last search covered (after, until] and found `fire`.
  const isKnown = last.after <= after && (last.fire === null ? until <= last.until : after < last.fire)
  if (!isKnown) Object.assign(last, { after, until, fire: nextMatch(matchers, after, until) })
  return last.fire !== null && last.fire <= until ? last.fire : null
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

/** A schedule, and what was found of it last. */
interface KnownSchedule {
  matchers: Matchers
  last: { after: number; until: number; fire: number | null }
}

function scheduleOf(expression: string, timezone: string): KnownSchedule {
  const name = `${timezone} ${expression}`
  const known = KNOWN.get(name)
  if (known) return known
  const last = { after: Number.POSITIVE_INFINITY, until: Number.NEGATIVE_INFINITY, fire: null }
  const made = { matchers: createMatchers(expression, timezone), last }
  KNOWN.set(name, made)
  return made
}

function createMatchers(expression: string, timezone: string): Matchers {
  const fields = nodeCron().parse(expression)
  const { day, hour, minute } = coarserExpressions(fields)
  const isMinute = rememberingLast(MINUTE, createMatcher(minute, timezone))
  const [minutes, seconds] = [fields.minute.map(Number), fields.second.map(Number)]
  // Clocks differ from UTC by a multiple of a quarter of an hour.
  const inQuarter = new Set(minutes.map((value) => value % 15))
  const inMinute = new Set(seconds)
  return {
    day: rememberingLast(DAY, createMatcher(day, 'UTC')),
    hour: createMatcher(hour, timezone),
    minute: isMinute,
    second: (time) => inMinute.has(Math.floor(time / SECOND) % 60) && isMinute(time),
    mayBeMinute: (time) => inQuarter.has(Math.floor(time / MINUTE) % 15),
  }
}

/** Remembers the answer for the last span of this many milliseconds: a match takes some ten microseconds. */
function rememberingLast(span: number, matches: (time: number) => boolean): (time: number) => boolean {
  let [last, answer] = [Number.NaN, false]
  return (time) => {
    const index = Math.floor(time / span)
    if (index !== last) [last, answer] = [index, matches(time)]
    return answer
  }
}

/** Cron expressions for the whole days, hours and minutes of a schedule. */
function coarserExpressions(fields: ParsedFields) {
  const day = `${fields.dayOfMonth.join()} ${fields.month.join()} ${fields.dayOfWeek.join()}`
  const hour = `${fields.hour.join()} ${day}`
  const minute = `${fields.minute.join()} ${hour}`
  return {
    day: `* * * ${day}`,
    hour: `* * ${hour}`,
    minute: `* ${minute}`,
  }
}

function createMatcher(expression: string, timezone: string): (time: number) => boolean {
  const task = nodeCron().createTask(expression, () => {}, { timezone, logger: SILENT })
  // node-cron lists all tasks for ever; a destroyed one has left the list and still matches.
  void task.destroy()
  return (time) => task.match(new Date(time))
}

/** Whether a schedule may fire in the day, hour, minute or second of a moment (epoch milliseconds). */
interface Matchers {
  /** Whether the moment's day in UTC is a day of the schedule, in whatever zone. */
  day(time: number): boolean
  /** Whether the moment's local day and hour are in the schedule; likewise `minute` and `second`. */
  hour(time: number): boolean
  minute(time: number): boolean
  second(time: number): boolean
  /** False if no clock of any zone shows a minute of the schedule. Asked first: all others need a calendar, which takes longer. */
  mayBeMinute(time: number): boolean
}

// All zones differ from UTC by a multiple of this, before and after each change of their clocks: a local hour neither
// begins nor ends within one.
const QUARTER = 15 * MINUTE

/**
 * Returns the first whole second in (`after`, `until`] that the schedule matches, or null; epoch milliseconds. The
 * search takes the longest steps that are safe: a year without a match takes some hundred of them.
 */
function nextMatch(matches: Matchers, after: number, until: number): number | null {
  let time = startOfNext(SECOND, after)
  while (time <= until) {
    if (!matches.mayBeMinute(time)) time = startOfNext(MINUTE, time)
    else if (!isDayNear(matches, time)) time = startOfNext(DAY, time)
    else if (!matches.hour(time)) time = startOfNext(QUARTER, time)
    else if (!matches.minute(time)) time = startOfNext(MINUTE, time)
    else if (!matches.second(time)) time = startOfNext(SECOND, time)
    else return time
  }
  return null
}

function startOfNext(unit: number, time: number): number {
  return (Math.floor(time / unit) + 1) * unit
}

/** A moment's local day is its day in UTC, the one before or the one after. */
function isDayNear(matches: Matchers, time: number): boolean {
  return matches.day(time) || matches.day(time - DAY) || matches.day(time + DAY)
}
