import {
  createTask,
  type Logger,
  type ParsedFields,
  parse,
  type TaskContext,
  validateDetailed,
} from 'node-cron'
import { type Matchers, nextMatch } from './next-match.ts'
import { fieldFault, spellingFault } from './spelling.ts'

const DAY = 86_400_000
// Leap days meet every weekday within 28 years: what does not fire in these never does.
const CYCLE = { start: Date.UTC(2001, 0, 1), days: 28 * 365 + 7 }
// The century without a leap day can lie between two fires of a schedule: 40 years hold one of each.
const FORTY_YEARS = 40 * 366 * DAY

const SILENT: Logger = { info() {}, warn() {}, error() {}, debug() {} }

/**
 * What is wrong with a cron expression (5 or 6 fields, or a word like `@daily`), in plain words; null when nothing is.
 * One that can never fire (30 February) is wrong, too. A day must suit both its day of month and its day of week.
 */
export function checkCron(expression: string): string | null {
  const misspelt = expression.trim().startsWith('@') ? null : spellingFault(expression)
  if (misspelt !== null) return misspelt
  const { valid, errors } = validateDetailed(expression)
  if (!valid) return faultOf(errors[0])
  return everFires(expression) ? null : 'no day is like that, so that it would never fire'
}

function faultOf(error: ReturnType<typeof validateDetailed>['errors'][number] | undefined): string {
  if (error?.message.includes('impossible day')) return 'no day is like that, so that it would never fire'
  if (error === undefined || error.field === 'expression')
    return 'it has a character that means nothing there'
  const names: Record<string, string> = { dayOfMonth: 'day of month', dayOfWeek: 'day of week' }
  return fieldFault(names[error.field] ?? error.field, error.value ?? '')
}

function everFires(expression: string): boolean {
  const { day } = createMatchers(parse(expression), 'UTC')
  for (let index = 0; index < CYCLE.days; index++) if (day(CYCLE.start + index * DAY)) return true
  return false
}

/**
 * The first fire time (epoch milliseconds) in (`after`, `until`], or null. It is the clock on the wall that counts: what
 * names an hour that a change of the clocks skips does not fire on that day, and in an hour that comes twice it fires
 * twice. `expression` has passed {@link checkCron}; throws for a time zone that does not exist.
 */
export function nextFireAfter(
  expression: string,
  timezone: string,
  after: number,
  until: number,
): number | null {
  return nextMatch(createMatchers(parse(expression), timezone), after, until)
}

/** A schedule that calls back when its time comes, until it is stopped. */
export interface Firing {
  /** Nothing fires from here on. */
  stop(): Promise<void> | void
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
  const fields = parse(expression)
  const matchers = createMatchers(fields, timezone)
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

  const task = createTask(wakeExpression(fields), wake, {
    timezone: 'UTC',
    logger: SILENT,
    suppressMissedWarning: true,
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
      return task.destroy()
    },
    nextRun() {
      const next = stopped ? null : task.getNextRun()?.getTime()
      if (next == null) return null
      const time = nextMatch(matchers, next - 1, next + FORTY_YEARS)
      return time === null ? null : new Date(time)
    },
  }
}

/** In UTC, every moment at which a clock that differs from it by quarters of an hour can show these minutes and seconds. */
function wakeExpression({ second, minute }: ParsedFields): string {
  const minutes = new Set(minute.flatMap((value) => [0, 15, 30, 45].map((shift) => (value + shift) % 60)))
  return `${second.join()} ${[...minutes].join()} * * * *`
}

function createMatchers(fields: ParsedFields, timezone: string): Matchers {
  const day = `${fields.dayOfMonth.join()} ${fields.month.join()} ${fields.dayOfWeek.join()}`
  const hour = `${fields.hour.join()} ${day}`
  const minute = `${fields.minute.join()} ${hour}`
  return {
    day: createMatcher(`* * * ${day}`, 'UTC'),
    hour: createMatcher(`* * ${hour}`, timezone),
    minute: createMatcher(`* ${minute}`, timezone),
    second: createMatcher(`${fields.second.join()} ${minute}`, timezone),
  }
}

function createMatcher(expression: string, timezone: string): (time: number) => boolean {
  const task = createTask(expression, () => {}, { timezone, logger: SILENT })
  // node-cron keeps a list of all tasks for ever; a destroyed one has left it and still matches.
  void task.destroy()
  return (time) => task.match(new Date(time))
}
