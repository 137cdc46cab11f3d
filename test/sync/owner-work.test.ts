import { describe, expect, it } from 'vitest'
import { type OwnerWork, ownerName, walkLeft, workText } from '../../src/sync/owner-work.ts'

const NOW = Date.parse('2026-11-20T08:10:00.000Z')

/** After ten minutes: 25 of 100 pages, in two runs of which this one has read 20. */
const RUN = {
  startedAt: '2026-11-20T08:00:00.000Z',
  pages: 20,
  rowsSeen: 500,
  walkSeen: 625,
  total: 2500,
  updatedAt: '2026-11-20T08:10:00.000Z',
  waitingUntil: null,
}

const WORK: OwnerWork = { isDaemon: false, isVerify: false, trigger: 'schedule' }

describe('the owner of a job', () => {
  it.each([
    ['4711-0123456789ab', true, 'the scheduler of process 4711'],
    ['worker-2-4711-0123456789ab', true, 'the scheduler of process 4711 on worker-2'],
    ['another process', false, 'another process'],
  ])('%s (a start: %s) is called %s', (name, isDaemon, expected) => {
    expect(ownerName(name, { ...WORK, isDaemon })).toBe(expected)
  })

  it.each<[string, OwnerWork | null]>([
    ['is working on it', WORK],
    ['is working on it (a backfill)', { ...WORK, trigger: 'backfill' }],
    ['is refreshing it', { ...WORK, trigger: 'refresh' }],
    ['is comparing it with the API (verify)', { ...WORK, isVerify: true, trigger: null }],
    ['is working on it', null],
  ])('%s', (expected, work) => {
    expect(workText(work)).toBe(expected)
  })
})

describe('how long a walk still takes', () => {
  it.each<[string, Partial<Parameters<typeof walkLeft>[0]>, number | null]>([
    ['at the speed of its run', {}, 37.5],
    ['which a longer wait outlasts', { waitingUntil: '2026-11-20T09:10:00.000Z' }, 60],
    ['without a wait by a wrong clock', { waitingUntil: '2031-01-01T00:00:00.000Z' }, 37.5],
    ['of three pages', { pages: 3, rowsSeen: 75, total: 700 }, 10],
    ['at its end', { walkSeen: 2500 }, 0],
    ['unknown after two pages', { pages: 2, rowsSeen: 50 }, null],
    ['unknown where no item was seen', { rowsSeen: 0 }, null],
    ['unknown for a list without a length', { total: null }, null],
  ])('is known, %s', (_, changes, minutes) => {
    expect(walkLeft({ ...RUN, ...changes }, NOW)).toBe(minutes === null ? null : minutes * 60_000)
  })
})
