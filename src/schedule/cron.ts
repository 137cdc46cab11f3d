import { createRequire } from 'node:module'
import type { CronFieldError, Logger, ParsedFields } from 'node-cron'
import { type Matchers, nextMatch } from './next-match.ts'

// Loaded where the first schedule needs it: every command checks the schedules, and most are right at first sight. Not import(),
// since the rules of the configuration are synchronous.
const require = createRequire(import.meta.url)
const nodeCron = () => require('node-cron') as typeof import('node-cron')

const DAY = 86_400_000
// Leap days fall on every weekday within 28 years: a schedule that does not fire in these never does.
const CYCLE = { start: Date.UTC(2001, 0, 1), days: 28 * 365 + 7 }

/** Matchers by schedule: hundreds of jobs share a few schedules, and building one takes 0.5 ms. */
const KNOWN = new Map<string, Matchers>()

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

/**
 * Returns the first fire time (epoch milliseconds) in (`after`, `until`], or null; a leap day on a given weekday can be
 * 40 years away. Local time counts: a time in an hour that a change of the clocks skips does not fire on that day, and
 * one in an hour that comes twice fires twice. `expression` has passed `checkCron`; throws for an unknown time zone.
 */
export function nextFireAfter(
  expression: string,
  timezone: string,
  after: number,
  until: number,
): number | null {
  return nextMatch(matchersOf(expression, timezone), after, until)
}

const YEAR = 366 * DAY

/** How many milliseconds lie between two fire times of a checked schedule, as a mean of the next ones; at most a year. */
export function periodOf(expression: string, timezone: string, now: number): number {
  const times: number[] = []
  for (let next: number | null = now; next !== null && times.length <= MEASURED_FIRES; ) {
    next = nextFireAfter(expression, timezone, next, now + YEAR)
    if (next !== null) times.push(next)
  }
  const [first, last] = [times[0], times.at(-1)]
  if (first === undefined || last === undefined || times.length < 2) return YEAR
  return (last - first) / (times.length - 1)
}

/** Enough for the days of a week. */
const MEASURED_FIRES = 8

function matchersOf(expression: string, timezone: string): Matchers {
  const name = `${timezone} ${expression}`
  const known = KNOWN.get(name) ?? createMatchers(expression, timezone)
  KNOWN.set(name, known)
  return known
}

const SECOND = 1000
const MINUTE = 60 * SECOND

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

/** Asks once in a row for each span of so many milliseconds: a match takes some ten microseconds. */
function rememberingLast(span: number, matches: (time: number) => boolean): (time: number) => boolean {
  let [last, answer] = [Number.NaN, false]
  return (time) => {
    const index = Math.floor(time / span)
    if (index !== last) [last, answer] = [index, matches(time)]
    return answer
  }
}

/** Cron expressions for the whole days, hours and minutes of a schedule. */
export function coarserExpressions(fields: ParsedFields) {
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
