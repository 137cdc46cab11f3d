import { describe, expect, it } from 'vitest'
import { type ScheduledJob, startScheduler } from '../../src/schedule/scheduler.ts'
import { createDueCheck } from '../../src/schedule/ticks.ts'
import { LONG } from '../helpers/long.ts'
import { createTimeline, type Timeline } from './timeline.ts'

// `start` in a leap year: two changes of the clocks in each of two zones, runs that take longer than their schedule, and a
// time in which it stood still. Each run of the tests lives through the weeks around the changes, the long one through the year.

const MINUTE = 60_000
const QUARTER = 15 * MINUTE
const HOUR = 60 * MINUTE

interface Period {
  start: number
  end: number
  stopped: { from: number; to: number }
}

function period(...times: [start: string, from: string, to: string, end: string]): Period {
  const [start = 0, from = 0, to = 0, end = 0] = times.map((time) => Date.parse(`${time}Z`))
  return { start, end, stopped: { from, to } }
}

const YEAR = period('2028-01-01T00:00', '2028-06-10T12:07', '2028-07-10T12:07', '2029-01-01T00:00')
const SPRING = period('2028-02-25T00:00', '2028-03-14T12:07', '2028-03-17T12:07', '2028-03-29T00:00')
const AUTUMN = period('2028-10-26T00:00', '2028-10-30T12:07', '2028-11-01T12:07', '2028-11-08T00:00')

interface Local {
  month: number
  day: number
  weekday: string
  hour: number
  minute: number
}

interface Case {
  name: string
  expression: string
  timezone: string
  /** Whether the schedule names this minute of the local clock: written by hand. */
  fires: (local: Local) => boolean
  /** How long a run takes. */
  takes: number
  /** Ticks of the year, counted by hand. */
  perYear: number
}

const CASES: readonly Case[] = [
  {
    name: 'four times a day, in New York',
    expression: '15 */6 * * *',
    timezone: 'America/New_York',
    fires: ({ hour, minute }) => hour % 6 === 0 && minute === 15,
    takes: 5 * MINUTE,
    perYear: 366 * 4,
  },
  {
    name: 'each hour, with runs of 100 minutes',
    expression: '0 * * * *',
    timezone: 'Europe/Berlin',
    fires: ({ minute }) => minute === 0,
    takes: 100 * MINUTE,
    perYear: 366 * 24,
  },
  {
    // Skipped on 26 March, twice on 29 October.
    name: 'half past two in Berlin',
    expression: '30 2 * * *',
    timezone: 'Europe/Berlin',
    fires: ({ hour, minute }) => hour === 2 && minute === 30,
    takes: 10 * MINUTE,
    perYear: 366,
  },
  {
    // Twice on 5 November: begun at the first, still running at the second.
    name: 'half past one in New York, for three hours',
    expression: '30 1 * * *',
    timezone: 'America/New_York',
    fires: ({ hour, minute }) => hour === 1 && minute === 30,
    takes: 3 * HOUR,
    perYear: 367,
  },
  {
    name: 'nine on working days in New York',
    expression: '0 9 * * 1-5',
    timezone: 'America/New_York',
    fires: ({ weekday, hour, minute }) => !/Sat|Sun/.test(weekday) && hour === 9 && minute === 0,
    takes: HOUR,
    perYear: 260,
  },
  {
    name: 'the leap day',
    expression: '0 0 29 2 *',
    timezone: 'Europe/Berlin',
    fires: ({ month, day, hour, minute }) => month === 2 && day === 29 && hour === 0 && minute === 0,
    takes: HOUR,
    perYear: 1,
  },
]

/** All quarters of an hour of the year with the clocks of the zone: in these zones every tick is on one. */
function quartersOf(timezone: string, { start, end }: Period): { time: number; local: Local }[] {
  const clock = new Intl.DateTimeFormat('en-US', {
    timeZone: timezone,
    month: 'numeric',
    day: 'numeric',
    weekday: 'short',
    hour: 'numeric',
    minute: 'numeric',
    hourCycle: 'h23',
  })
  return Array.from({ length: (end - start) / QUARTER }, (_, index) => {
    const time = start + (index + 1) * QUARTER
    const parts = new Map(clock.formatToParts(time).map(({ type, value }) => [type, value]))
    const number = (type: Intl.DateTimeFormatPartTypes) => Number(parts.get(type))
    const [month, day, hour, minute] = [number('month'), number('day'), number('hour'), number('minute')]
    return { time, local: { month, day, weekday: parts.get('weekday') ?? '', hour, minute } }
  })
}

function ticksOf({ timezone, fires }: Case, whole: Period): number[] {
  return quartersOf(timezone, whole)
    .filter(({ local }) => fires(local))
    .map(({ time }) => time)
}

/** What a case's job has done; epoch milliseconds. */
interface Deeds {
  begun: number[]
  skipped: number[]
  atOnce: number
  mostAtOnce: number
  /** Runs that ended well. */
  completed: number | null
  caughtUp: number[]
}

/** One `start`, which is stopped at `until`. */
async function runUntil(until: number, timeline: Timeline, records: ReadonlyMap<string, Deeds>) {
  const isDue = createDueCheck(timeline.now())
  const recordOf = (name: string) => records.get(name) as Deeds
  const jobs = CASES.map(({ name, expression, timezone, takes }): ScheduledJob => {
    const record = recordOf(name)
    const schedule = { expression, timezone }
    const dueAtStart =
      record.completed !== null && isDue({ completedAt: record.completed, startedAt: null }, schedule)
    if (dueAtStart) record.caughtUp.push(timeline.now())
    const run = async () => {
      const begun = timeline.now()
      record.begun.push(begun)
      record.mostAtOnce = Math.max(record.mostAtOnce, ++record.atOnce)
      await timeline.sleep(takes, new AbortController().signal)
      record.atOnce--
      record.completed = begun
    }
    return { name, ...schedule, dueAtStart, run }
  })
  const errors: unknown[] = []
  const events = {
    onOverlap: (name: string) => recordOf(name).skipped.push(timeline.now()),
    onError: (_: string, error: unknown) => errors.push(error),
  }
  const scheduler = startScheduler(jobs, events, timeline)
  await timeline.pass(until - timeline.now())
  const stopping = scheduler.stop()
  await timeline.pass(4 * HOUR)
  await stopping
  expect(errors).toEqual([])
}

async function liveThrough(whole: Period): Promise<Map<string, Deeds>> {
  const { start, end, stopped } = whole
  const timeline = createTimeline(start)
  const records = new Map(
    CASES.map(({ name }): [string, Deeds] => [
      name,
      { begun: [], skipped: [], atOnce: 0, mostAtOnce: 0, completed: null, caughtUp: [] },
    ]),
  )
  await runUntil(stopped.from, timeline, records)
  await timeline.pass(stopped.to - timeline.now())
  await runUntil(end, timeline, records)
  return records
}

describe.each([
  ['the spring of 2028', SPRING],
  ['the autumn of 2028', AUTUMN],
  ...(LONG ? [['the year 2028', YEAR] as const] : []),
] as const)('%s of start, in two processes with a time between them', (_name, whole) => {
  it('has each tick once', { timeout: 300_000 }, async () => {
    const records = await liveThrough(whole)

    for (const one of CASES) {
      const { begun, skipped, caughtUp, mostAtOnce } = records.get(one.name) as Deeds
      const all = ticksOf(one, whole)
      const isMissed = (time: number) => whole.stopped.from < time && time <= whole.stopped.to
      const expected = all.filter((time) => !isMissed(time))
      // What was missed is made up for once, at the second start.
      const catchesUp = all.some(isMissed) ? [whole.stopped.to] : []
      expect([one.name, caughtUp, mostAtOnce]).toEqual([one.name, catchesUp, Math.min(1, expected.length)])
      if (whole === YEAR) expect([one.name, all.length]).toEqual([one.name, one.perYear])
      expect([...begun, ...skipped].toSorted((a, b) => a - b)).toEqual(
        [...expected, ...catchesUp].toSorted((a, b) => a - b),
      )
    }
    const slow = records.get('each hour, with runs of 100 minutes') as Deeds
    const { start, end, stopped } = whole
    const hours = (end - start - (stopped.to - stopped.from)) / HOUR
    expect(slow.skipped.length).toBeGreaterThan(0.48 * hours)
    expect(records.get('half past one in New York, for three hours')?.skipped).toEqual(
      whole === SPRING ? [] : [Date.parse('2028-11-05T06:30:00Z')],
    )
  })
})
