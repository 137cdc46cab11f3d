import { describe, expect, it } from 'vitest'
import { beganAhead, createTicks, isDue } from '../../src/schedule/ticks.ts'

const NOON = Date.UTC(2026, 0, 1, 12)
const HOUR = 3_600_000
const DAY = 24 * HOUR

const hourly = { expression: '0 * * * *', timezone: 'UTC' }
const everySecond = { expression: '* * * * * *', timezone: 'UTC' }
const yearly = { expression: '0 0 1 1 *', timezone: 'UTC' }

describe('the ticks of schedules', () => {
  it('come once, at the same time for every worker, whenever it looks', () => {
    const prompt = createTicks([hourly], NOON)
    const late = createTicks([hourly], NOON - 1000)

    expect(prompt.come(NOON + HOUR - 1)).toEqual([])
    expect(prompt.come(NOON + HOUR)).toEqual([{ schedule: hourly, at: NOON + HOUR }])
    expect(prompt.come(NOON + HOUR)).toEqual([])
    expect(prompt.come(NOON + HOUR + 5)).toEqual([])
    expect(late.come(NOON + 1)).toEqual([{ schedule: hourly, at: NOON }])
    expect(late.come(NOON + HOUR + 700)).toEqual([{ schedule: hourly, at: NOON + HOUR }])
  })

  it('are one for all that were missed', () => {
    const ticks = createTicks([everySecond, hourly], NOON)

    expect(ticks.come(NOON + 2 * HOUR + 500)).toEqual([
      { schedule: everySecond, at: NOON + 1000 },
      { schedule: hourly, at: NOON + HOUR },
    ])
    expect(ticks.come(NOON + 2 * HOUR + 999)).toEqual([])
    expect(ticks.come(NOON + 2 * HOUR + 1000)).toEqual([
      { schedule: everySecond, at: NOON + 2 * HOUR + 1000 },
    ])
  })

  it('come though the next one is far away', () => {
    const ticks = createTicks([yearly], NOON)
    const came: number[] = []
    while (came.length === 0) {
      const now = ticks.quietUntil()
      expect(now).toBeLessThanOrEqual(NOON + 366 * DAY)
      came.push(...ticks.come(now).map(({ at }) => at))
    }

    expect(came).toEqual([Date.UTC(2027, 0, 1)])
  })

  it('come again after the clock was set back, or none would come for an hour', () => {
    const ticks = createTicks([hourly], NOON - HOUR)
    ticks.come(NOON + HOUR)

    expect(ticks.come(NOON + 60_000)).toEqual([])
    expect(ticks.come(NOON + HOUR)).toEqual([{ schedule: hourly, at: NOON + HOUR }])
    expect(ticks.come(NOON + 2 * HOUR)).toEqual([{ schedule: hourly, at: NOON + 2 * HOUR }])
  })

  it('come once though the clock is corrected by seconds', () => {
    const ticks = createTicks([hourly], NOON)
    ticks.come(NOON + HOUR)

    expect(ticks.come(NOON + HOUR - 3000)).toEqual([])
    expect(ticks.come(NOON + HOUR)).toEqual([])
  })
})

const HOURLY = { expression: '0 * * * *', timezone: 'UTC' }
const NIGHTLY = { expression: '30 2 * * *', timezone: 'Europe/Paris' }

type Schedule = typeof HOURLY

const SKIPPED = ['2026-03-28T01:30:00', '2026-03-28T01:30:00'] as const
const AHEAD = ['2027-01-01T00:00:00', '2027-01-01T00:00:00'] as const

/** A time in UTC, on 20 November 2026 unless it names its day. */
function timeOf(text: string | null): number | null {
  return text === null ? null : Date.parse(`${text.includes('T') ? text : `2026-11-20T${text}`}Z`)
}

describe('at the start a job', () => {
  it.each<[string, Schedule, completed: string | null, started: string | null, now: string, boolean]>([
    ['that was never begun', HOURLY, null, null, '08:01:00', true],
    ['whose time came while it was down', HOURLY, '08:00:00', '08:00:00', '09:00:30', true],
    ['whose time is this moment', HOURLY, '08:00:00', '08:00:00', '09:00:00', true],
    ['whose last run failed, and its time came', HOURLY, '2026-11-19T08:00:00', '08:00:00', '09:30:00', true],
    ['that was completed a moment ago', HOURLY, '08:00:00', '08:00:00', '08:59:59', false],
    ['whose last run failed a moment ago', HOURLY, '2026-11-19T08:00:00', '08:00:01', '08:30:00', false],
    ['that a backfill completed since', HOURLY, '09:10:00', '08:00:00', '09:30:00', false],
    ['of a night that the clocks skip', NIGHTLY, ...SKIPPED, '2026-03-29T23:00:00', false],
    ['that was begun ahead of a corrected clock', HOURLY, ...AHEAD, '08:00:00', false],
  ])('%s is due, or not', (_, schedule, completedAt, startedAt, now, expected) => {
    const last = { completedAt: timeOf(completedAt), startedAt: timeOf(startedAt) }

    expect(isDue(last, schedule, timeOf(now) ?? 0)).toBe(expected)
  })
})

describe('a run of the future', () => {
  it.each([
    ['an hour ago', -60, -60, false],
    ['half a minute ahead', 0.5, 0.5, false],
    ['an hour ahead', 60, 60, true],
    ['an hour ahead, and was not completed', -60, 60, true],
    ['an hour ahead, and the first one', null, 60, true],
  ])('began %s', (_when, completed, started, expected) => {
    const now = Date.UTC(2026, 10, 20)
    const time = (minutes: number | null) => (minutes === null ? null : now + minutes * 60_000)
    const last = { completedAt: time(completed), startedAt: time(started) }

    expect(beganAhead(last, now)).toBe(expected)
  })
})
