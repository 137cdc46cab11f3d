import { describe, expect, it } from 'vitest'
import { isDue } from '../../src/schedule/due.ts'

const HOURLY = { expression: '0 * * * *', timezone: 'UTC' }
const AHEAD = '2027-01-01T00:00:00'

/** A time in UTC, on 20 November 2026 unless it names its day. */
function timeOf(text: string | null): number | null {
  return text === null ? null : Date.parse(`${text.includes('T') ? text : `2026-11-20T${text}`}Z`)
}

describe('at the start a job', () => {
  it.each<[string, completed: string | null, started: string | null, now: string, boolean]>([
    ['that was never begun', null, null, '08:01:00', true],
    ['whose time is this moment', '08:00:00', '08:00:00', '09:00:00', true],
    ['whose last run failed, and its time came', '2026-11-19T08:00:00', '08:00:00', '09:30:00', true],
    ['whose last run failed a moment ago', '2026-11-19T08:00:00', '08:00:01', '08:30:00', false],
    ['that a backfill completed since', '09:10:00', '08:00:00', '09:30:00', false],
    ['that was completed by a clock that was ahead', AHEAD, AHEAD, '08:00:00', true],
    ['that was completed by a clock half a minute ahead', '08:00:30', '08:00:30', '08:00:00', false],
    ['that failed by a clock ahead since, and was completed just now', '08:00:00', AHEAD, '08:59:59', false],
    ['that failed by a clock ahead since, and its time came', '08:00:00', AHEAD, '09:00:00', true],
  ])('%s is due, or not', (_, completedAt, startedAt, now, expected) => {
    const last = { completedAt: timeOf(completedAt), startedAt: timeOf(startedAt), unfinished: false }

    expect(isDue(last, HOURLY, timeOf(now) ?? 0)).toBe(expected)
  })

  it('whose walk is unfinished is due', () => {
    const last = { completedAt: timeOf('08:00:00'), startedAt: timeOf('08:30:00'), unfinished: true }

    expect(isDue(last, HOURLY, timeOf('08:31:00') ?? 0)).toBe(true)
  })
})
