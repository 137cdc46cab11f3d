import { describe, expect, it } from 'vitest'
import { isDue } from '../../src/schedule/due.ts'

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
    ['that was completed by a clock that was ahead', HOURLY, ...AHEAD, '08:00:00', true],
    ['that was completed by a clock half a minute ahead', HOURLY, '08:00:30', '08:00:30', '08:00:00', false],
    [
      'that failed by a clock ahead since, and was completed just now',
      HOURLY,
      '08:00:00',
      AHEAD[0],
      '08:59:59',
      false,
    ],
    ['that failed by a clock ahead since, and its time came', HOURLY, '08:00:00', AHEAD[0], '09:00:00', true],
  ])('%s is due, or not', (_, schedule, completedAt, startedAt, now, expected) => {
    const last = { completedAt: timeOf(completedAt), startedAt: timeOf(startedAt), unfinished: false }

    expect(isDue(last, schedule, timeOf(now) ?? 0)).toBe(expected)
  })

  it('whose walk is unfinished is due', () => {
    const last = { completedAt: timeOf('08:00:00'), startedAt: timeOf('08:30:00'), unfinished: true }

    expect(isDue(last, HOURLY, timeOf('08:31:00') ?? 0)).toBe(true)
  })
})
