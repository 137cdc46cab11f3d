import { describe, expect, it } from 'vitest'
import { type OwnerWork, ownerName, type RunningRun, workText } from '../../src/sync/owner-work.ts'

const AT = '2026-11-20T08:00:00.000Z'
const NOW = Date.parse('2026-11-20T08:10:00.000Z')

/** After ten minutes: 25 of 100 pages, in two runs of which this one has read 20. */
const RUN: RunningRun = {
  trigger: 'schedule',
  startedAt: AT,
  pages: 20,
  rowsSeen: 500,
  nextPage: 26,
  walkSeen: 625,
  total: 2500,
  updatedAt: '2026-11-20T08:10:00.000Z',
  waitingUntil: null,
}

const AT_ITS_END = { nextPage: null, walkSeen: 2500 }

function working(changes: Partial<RunningRun>): OwnerWork {
  return { isDaemon: false, isVerify: false, run: { ...RUN, ...changes } }
}

function waiting(until: string): OwnerWork {
  return working({ waitingUntil: `${until}:00.000Z` })
}

describe('the owner of a job', () => {
  it.each([
    ['4711-0123456789ab', true, 'the scheduler of process 4711'],
    ['worker-2-4711-0123456789ab', true, 'the scheduler of process 4711 on worker-2'],
    ['another process', false, 'another process'],
  ])('%s (a start: %s) is called %s', (name, isDaemon, expected) => {
    expect(ownerName(name, { isDaemon, isVerify: false, run: null })).toBe(expected)
  })

  it.each<[string, OwnerWork | null, string]>([
    ['at the speed of its run', working({}), '(page 26, 25 %, about 38 minutes left)'],
    ['which a longer wait outlasts', waiting('2026-11-20T09:10'), '(page 26, 25 %, about 60 minutes left)'],
    [
      'without a wait by a wrong clock',
      waiting('2031-01-01T00:00'),
      '(page 26, 25 %, about 38 minutes left)',
    ],
    [
      'of three pages',
      working({ pages: 3, rowsSeen: 75, total: 700 }),
      '(page 26, 89 %, about 10 minutes left)',
    ],
    ['of two pages', working({ pages: 2, rowsSeen: 50 }), '(page 26, 25 %)'],
    ['that has seen no item', working({ rowsSeen: 0 }), '(page 26, 25 %)'],
    ['of a list without a length', working({ total: null }), '(page 26)'],
    ['at its end', working(AT_ITS_END), '(all pages read, 100 %, about 0 seconds left)'],
    ['by hand', working({ trigger: 'backfill', pages: 1 }), '(a backfill, page 26, 25 %)'],
    ['that is a refresh', working({ trigger: 'refresh' }), 'is refreshing it'],
    ['without a run', { isDaemon: true, isVerify: false, run: null }, '(about to begin)'],
    ['a verify', { isDaemon: false, isVerify: true, run: null }, 'is comparing it with the API (verify)'],
  ])('tells of its work, %s', (_, work, expected) => {
    expect(workText(work, NOW).replace(/^is working on it /, '')).toBe(expected)
  })
})
