import { describe, expect, it } from 'vitest'
import { newsOf, nextPublication, type Shown } from '../../../src/store/core/publication.ts'

const LINE = {
  organization_id: 'o',
  collection: 'orders',
  rows: 3,
  as_of: '2026-11-20T08:00:00.000Z',
  last_run_at: '2026-11-20T08:00:00.000Z',
  last_run_status: 'succeeded',
  error_code: null,
  removals_held: 0,
}
const FILE: Shown = { lists: [LINE], rest: 'r' }

describe('what the published file lacks', () => {
  it.each<[string, object, string, ReturnType<typeof newsOf>]>([
    ['nothing', {}, 'r', 'none'],
    ['that a run has begun', { last_run_status: 'running', last_run_at: 'later' }, 'r', 'none'],
    ['times', { as_of: 'later', last_run_at: 'later' }, 'r', 'times'],
    ['a refused token', { last_run_status: 'failed', error_code: 'UNAUTHORIZED' }, 'r', 'more'],
    ['removals that are held back', { removals_held: 4 }, 'r', 'more'],
    ['rows', {}, 'other', 'more'],
  ])('is %s', (_what, changed, rest, news) => {
    expect(newsOf({ lists: [{ ...LINE, ...changed }], rest }, FILE)).toBe(news)
  })

  it('is a list that it does not have, and that a run which it shows has ended', () => {
    const other = { ...LINE, collection: 'establishments' }
    const shown: Shown = { lists: [{ ...LINE, last_run_status: 'running' }], rest: 'r' }

    expect(newsOf({ lists: [LINE, other], rest: 'r' }, FILE)).toBe('more')
    expect(newsOf({ lists: [], rest: 'r' }, FILE)).toBe('more')
    expect(newsOf(FILE, shown)).toBe('more')
  })
})

describe('a service makes the file again', () => {
  const NOW = 1_000_000_000
  const [MINUTE, HOUR] = [60_000, 3_600_000]
  const made = (ago: number, tookMs = 0) => ({ at: NOW - ago, tookMs })

  it.each<[string, 'times' | 'more', ReturnType<typeof made> | null, ReturnType<typeof made> | null, number]>(
    [
      ['at once where there is none', 'more', null, null, NOW],
      ['publishEvery after the last one', 'more', made(MINUTE), null, NOW + 4 * MINUTE],
      ['hourly where only times moved', 'times', made(MINUTE), null, NOW + HOUR - MINUTE],
      ['so that it takes a tenth of the time', 'more', made(MINUTE, 2 * MINUTE), null, NOW + 19 * MINUTE],
      ['later after a failure', 'more', null, made(MINUTE, 2 * MINUTE), NOW + 19 * MINUTE],
      ['at once after the clock was set back', 'more', made(-HOUR), made(-HOUR), NOW],
    ],
  )('%s', (_when, news, last, failed, at) => {
    expect(nextPublication(news, { made: last, failed, every: 5 * MINUTE, now: NOW })).toBe(at)
  })
})
