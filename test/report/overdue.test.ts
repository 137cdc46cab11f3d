import { describe, expect, it } from 'vitest'
import { jobStatus, walkProgress } from '../../src/report/status.ts'
import { isOverdue, lastAttempt } from '../../src/report/verdict.ts'
import { neverSynced, type StatusRow } from '../../src/store/core/status.ts'
import { START, timeAt } from '../helpers/clock.ts'
import { ACME } from '../helpers/jobs.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE

function rowOf(changed: Partial<StatusRow>): StatusRow {
  return { ...neverSynced(ACME, 'orders'), last_sync_finished_at: timeAt(0), ...changed }
}

describe('the last attempt', () => {
  it.each<[string, Partial<StatusRow>, number | null]>([
    ['of a list that was never tried is none', { last_sync_finished_at: null }, null],
    [
      'is the end of a run: a time within it is skipped',
      { last_sync_finished_at: timeAt(HOUR) },
      START + HOUR,
    ],
    [
      'is a full backfill, where that is later',
      { last_sync_finished_at: timeAt(HOUR), as_of: timeAt(2 * HOUR) },
      START + 2 * HOUR,
    ],
  ])('%s', (_, changed, expected) => {
    expect(lastAttempt(rowOf(changed))).toBe(expected)
  })
})

describe('a list', () => {
  const RUNNING = { running: true, last_run_at: timeAt(0), walk_updated_at: timeAt(0) }

  it.each<[string, Partial<StatusRow>, number | null, number, boolean]>([
    ['is overdue once its time is past', {}, 0, MINUTE, true],
    ['is given half a minute to begin', {}, 0, 29_999, false],
    ['that was never tried is overdue at once', { last_sync_finished_at: null }, null, 0, true],
    [
      'is not overdue while it is read, however long it takes',
      { ...RUNNING, walk_updated_at: timeAt(9 * HOUR) },
      0,
      10 * HOUR,
      false,
    ],
    ['is overdue if its run has written nothing for more than an hour', RUNNING, 0, HOUR + 1, true],
    [
      'is not while that run waits as it was told',
      { ...RUNNING, waiting_until: timeAt(3 * HOUR) },
      0,
      2 * HOUR,
      false,
    ],
    [
      'is overdue if several runs have written nothing for more than an hour, each killed before the next',
      { ...RUNNING, last_run_at: timeAt(HOUR), tried_since: timeAt(0) },
      0,
      HOUR + 1,
      true,
    ],
    ['is not if this user cannot see whether its run lives', { ...RUNNING, running: null }, 0, MINUTE, false],
    ['that is no longer configured never is', { configured: 0 }, 0, HOUR, false],
  ])('%s', (_, changed, dueAt, now, expected) => {
    const due = dueAt === null ? null : START + dueAt

    expect(isOverdue(rowOf(changed), due, START + now)).toBe(expected)
  })
})

describe('the progress of a walk', () => {
  const WALK: Partial<StatusRow> = {
    walk_origin: 'sync',
    walk_rows_seen: 250,
    walk_total: 1000,
    walk_updated_at: timeAt(MINUTE),
    last_run_at: timeAt(0),
    last_run_status: 'running',
    last_run_pages: 10,
    last_run_rows_seen: 250,
    running: true,
  }

  it.each<[string, Partial<StatusRow>, number | null, number | null]>([
    ['goes by the speed of its run', {}, 25, 3 * MINUTE],
    ['takes at least as long as the wait', { waiting_until: timeAt(HOUR) }, 25, HOUR],
    ['tells no time if nothing runs', { running: false }, 25, null],
    ['is never above 100 percent', { walk_rows_seen: 1001 }, 100, 0],
    ['of a list without a total is unknown', { walk_total: null }, null, null],
  ])('%s', (_, changed, percent, left) => {
    expect(walkProgress(rowOf({ ...WALK, ...changed }), START)).toEqual({
      walk_percent: percent,
      walk_left_ms: left,
    })
  })
})

describe('the wait of a list', () => {
  const DAY = 24 * HOUR

  it.each<[string, Partial<StatusRow>, boolean]>([
    ['that runs is told', { running: true, waiting_until: timeAt(DAY) }, true],
    [
      'for more than a day was written by a wrong clock',
      { running: true, waiting_until: timeAt(DAY + 1) },
      false,
    ],
    ['whose last run failed is told', { last_run_status: 'failed', waiting_until: timeAt(HOUR) }, true],
    [
      'whose last run succeeded is none',
      { last_run_status: 'succeeded', waiting_until: timeAt(HOUR) },
      false,
    ],
  ])('%s', (_, changed, isTold) => {
    const row = rowOf({ waiting_for: 'the rate limit', ...changed })

    const { waiting_for: reason, waiting_until: until } = jobStatus(row, { now: START })

    expect([reason, until]).toEqual(isTold ? ['the rate limit', row.waiting_until] : [null, null])
  })
})
