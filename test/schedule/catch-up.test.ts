import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { beganAhead, createDueCheck } from '../../src/schedule/ticks.ts'

const HOURLY = { expression: '0 * * * *', timezone: 'UTC' }
const NIGHTLY = { expression: '30 2 * * *', timezone: 'Europe/Paris' }
const YEARLY = { expression: '0 0 1 1 *', timezone: 'UTC' }
const BY_SECOND = { expression: '*/10 * * * * *', timezone: 'UTC' }

function at(text: string | null): number | null {
  return text === null ? null : Date.parse(text)
}

describe('a job is due at the start', () => {
  it.each([
    ['that was never begun', HOURLY, null, null, '2026-11-20T08:01:00Z'],
    ['that was begun but never completed', HOURLY, null, '2026-11-20T08:00:00Z', '2026-11-20T08:01:00Z'],
    [
      'whose time came while it was down',
      HOURLY,
      '2026-11-20T08:00:00Z',
      '2026-11-20T08:00:00Z',
      '2026-11-20T09:00:30Z',
    ],
    [
      'whose time is this moment',
      HOURLY,
      '2026-11-20T08:00:00Z',
      '2026-11-20T08:00:00Z',
      '2026-11-20T09:00:00Z',
    ],
    [
      'whose last run failed, and its time came',
      HOURLY,
      '2026-11-19T08:00:00Z',
      '2026-11-20T08:00:00Z',
      '2026-11-20T09:30:00Z',
    ],
    ['whose last run was pruned', HOURLY, '2026-11-20T08:00:00Z', null, '2026-11-20T09:30:00Z'],
    [
      'of a night that was missed',
      NIGHTLY,
      '2026-11-19T01:30:00Z',
      '2026-11-19T01:30:00Z',
      '2026-11-20T01:31:00Z',
    ],
    [
      'of a year that was missed',
      YEARLY,
      '2026-01-01T00:00:00Z',
      '2026-01-01T00:00:00Z',
      '2027-01-01T00:00:01Z',
    ],
    [
      'by the second',
      BY_SECOND,
      '2026-11-20T08:00:00.020Z',
      '2026-11-20T08:00:00.010Z',
      '2026-11-20T08:00:10Z',
    ],
  ])('%s', (_, schedule, completedAt, startedAt, now) => {
    const last = { completedAt: at(completedAt), startedAt: at(startedAt) }

    expect(createDueCheck(Date.parse(now))(last, schedule)).toBe(true)
  })
})

describe('a job waits for its next time', () => {
  it.each([
    [
      'that was completed a moment ago',
      HOURLY,
      '2026-11-20T08:00:00Z',
      '2026-11-20T08:00:00Z',
      '2026-11-20T08:59:59Z',
    ],
    [
      'that was begun late, by hand',
      HOURLY,
      '2026-11-20T08:40:00Z',
      '2026-11-20T08:40:00Z',
      '2026-11-20T08:59:59Z',
    ],
    [
      'whose last run failed, until its time comes',
      HOURLY,
      '2026-11-19T08:00:00Z',
      '2026-11-20T08:00:01Z',
      '2026-11-20T08:30:00Z',
    ],
    [
      'that a backfill completed since',
      HOURLY,
      '2026-11-20T09:10:00Z',
      '2026-11-20T08:00:00Z',
      '2026-11-20T09:30:00Z',
    ],
    ['of the night, by day', NIGHTLY, '2026-11-20T01:30:00Z', '2026-11-20T01:30:00Z', '2026-11-20T23:59:00Z'],
    [
      'of the night that the clocks skip',
      NIGHTLY,
      '2026-03-28T01:30:00Z',
      '2026-03-28T01:30:00Z',
      '2026-03-29T23:00:00Z',
    ],
    [
      'of a year that is not over',
      YEARLY,
      '2026-01-01T00:00:00Z',
      '2026-01-01T00:00:00Z',
      '2026-12-31T23:59:59Z',
    ],
    [
      'that was begun in the future, before the clock was corrected',
      HOURLY,
      '2027-01-01T00:00:00Z',
      '2027-01-01T00:00:00Z',
      '2026-11-20T08:00:00Z',
    ],
  ])('%s', (_, schedule, completedAt, startedAt, now) => {
    const last = { completedAt: at(completedAt), startedAt: at(startedAt) }

    expect(createDueCheck(Date.parse(now))(last, schedule)).toBe(false)
  })
})

describe('of many jobs', () => {
  it('each has the answer that it has alone', () => {
    const now = Date.parse('2026-11-20T08:00:30Z')
    const schedules = [HOURLY, NIGHTLY, BY_SECOND, { ...NIGHTLY, timezone: 'America/New_York' }]
    const anyJob = fc.record({
      schedule: fc.constantFrom(...schedules),
      begun: fc.integer({ min: now - 2 * 86_400_000, max: now + 60_000 }),
    })
    fc.assert(
      fc.property(fc.array(anyJob, { minLength: 2, maxLength: 8 }), (jobs) => {
        const isDue = createDueCheck(now)

        const together = jobs.map(({ schedule, begun }) =>
          isDue({ completedAt: begun, startedAt: null }, schedule),
        )

        const alone = jobs.map(({ schedule, begun }) =>
          createDueCheck(now)({ completedAt: begun, startedAt: null }, schedule),
        )
        expect(together).toEqual(alone)
      }),
    )
  })
})

describe('a run of the future', () => {
  it.each([
    ['never', null, null, false],
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
