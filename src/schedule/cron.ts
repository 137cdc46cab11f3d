import {
  type CronFieldError,
  createTask,
  type Logger,
  type ParsedFields,
  parse,
  type TaskContext,
  validateDetailed,
} from 'node-cron'
import { coarserExpressions, wakeExpression } from './derived.ts'
import { type Matchers, nextMatch } from './next-match.ts'
import { fieldFault, spellingFault } from './spelling.ts'

const DAY = 86_400_000
// Leap days meet every weekday within 28 years: what does not fire in these never does.
const CYCLE = { start: Date.UTC(2001, 0, 1), days: 28 * 365 + 7 }
// Where a century lacks its leap day, 40 years can lie between two fires of such a schedule.
const FORTY_YEARS = 40 * 366 * DAY

/** Those of the schedules that were asked for: hundreds of jobs have a few in common, and to make one takes 0.5 ms. */
const KNOWN = new Map<string, Matchers>()

const NEVER_FIRES = 'no day is like that, so that it would never fire'
const SILENT: Logger = { info() {}, warn() {}, error() {}, debug() {} }

/** What `checkCron` tells, of expressions of every kind. */
export function findCronFault(expression: string): string | null {
  const misspelt = expression.trim().startsWith('@') ? null : spellingFault(expression)
  if (misspelt !== null) return misspelt
  const { errors } = validateDetailed(expression)
  if (errors[0] !== undefined) return faultOf(errors[0])
  return everFires(expression) ? null : NEVER_FIRES
}

function faultOf({ field, value = '' }: CronFieldError): string {
  if (field === 'expression') return 'it has a character that means nothing there'
  // A day that is none only together with the months is reported under the same name.
  if (field === 'dayOfMonth' && validateDetailed(`0 0 ${value} * *`).valid) return NEVER_FIRES
  const names: Record<string, string> = { dayOfMonth: 'day of month', dayOfWeek: 'day of week' }
  return fieldFault(names[field] ?? field, value)
}

function everFires(expression: string): boolean {
  const { day } = createMatchers(parse(expression), 'UTC')
  for (let index = 0; index < CYCLE.days; index++) if (day(CYCLE.start + index * DAY)) return true
  return false
}

/**
 * The first fire time (epoch milliseconds) in (`after`, `until`], or null. It is the clock on the wall that counts: what
 * names an hour that a change of the clocks skips does not fire on that day, and in an hour that comes twice it fires
 * twice. `expression` has passed `checkCron`; throws for a time zone that does not exist.
 */
export function nextFireAfter(
  expression: string,
  timezone: string,
  after: number,
  until: number,
): number | null {
  return nextMatch(matchersOf(expression, timezone), after, until)
}

/** A schedule that calls back when its time comes, until it is stopped. */
export interface Firing {
  /** Nothing fires from here on. */
  stop(): void
  /** The next fire time; null when stopped. */
  nextRun(): Date | null
}

/**
 * Calls `fire` at the times that {@link nextFireAfter} tells, and once for all of those that the process could not keep,
 * because it was blocked or the machine slept. `fire` must not throw: node-cron would swallow it.
 *
 * node-cron only wakes us, at every moment that can be a fire time in some zone, and its matcher is asked for the rest.
 * Left to find the next local time by itself, it is silent for an hour when the clocks are put back.
 */
export function onSchedule(expression: string, timezone: string, fire: () => void): Firing {
  const matchers = matchersOf(expression, timezone)
  let lookedUntil = Number.POSITIVE_INFINITY
  let stopped = false

  function wake({ date }: TaskContext): void {
    // A wake that is under way when the task is stopped still comes.
    if (stopped) return
    const now = date.getTime()
    const due = nextMatch(matchers, Math.min(lookedUntil, now - 1), now)
    lookedUntil = now
    if (due !== null) fire()
  }

  const task = createTask(wakeExpression(parse(expression)), wake, {
    timezone: 'UTC',
    logger: SILENT,
    // By default a moment that is met more than a second late is dropped, be it the only one of the day.
    missedExecutionTolerance: Number.POSITIVE_INFINITY,
  })
  task.on('task:started', ({ date }) => {
    lookedUntil = date.getTime()
  })
  void task.start()
  return {
    stop() {
      stopped = true
      // Of a task in this process it is done at once.
      void task.destroy()
    },
    nextRun() {
      const next = stopped ? null : task.getNextRun()
      if (next === null) return null
      const time = nextMatch(matchers, next.getTime() - 1, next.getTime() + FORTY_YEARS)
      return time === null ? null : new Date(time)
    },
  }
}

function matchersOf(expression: string, timezone: string): Matchers {
  const name = `${timezone} ${expression}`
  const known = KNOWN.get(name) ?? createMatchers(parse(expression), timezone)
  KNOWN.set(name, known)
  return known
}

function createMatchers(fields: ParsedFields, timezone: string): Matchers {
  const { day, hour, minute, second } = coarserExpressions(fields)
  return {
    day: createMatcher(day, 'UTC'),
    hour: createMatcher(hour, timezone),
    minute: createMatcher(minute, timezone),
    second: createMatcher(second, timezone),
  }
}

function createMatcher(expression: string, timezone: string): (time: number) => boolean {
  const task = createTask(expression, () => {}, { timezone, logger: SILENT })
  // node-cron keeps a list of all tasks for ever; a destroyed one has left it and still matches.
  void task.destroy()
  return (time) => task.match(new Date(time))
}
