import { describe, expect, it } from 'vitest'
import { verdict } from '../../src/report/verdict.ts'
import { at, job } from '../listener/overviews.ts'

function told(running: (boolean | null)[], jobs = [job('acme')]): string {
  const processes = running.map((one, index) => ({ pid: index + 1, since: at(90), running: one }))
  const isAny = (wanted: boolean | null) => running.includes(wanted)
  const daemon = { running: isAny(true) ? true : isAny(null) ? null : false, processes }
  return verdict({ jobs, daemon, timezone: 'UTC', max_age: null, fresh: null })
}

describe('the verdict', () => {
  it.each<[daemons: (boolean | null)[], verdict: string]>([
    [[true], 'the only list is well'],
    [[true, true], 'the only list is well'],
    [[true, false], 'the only list is well; 1 of 2 daemons died'],
    [[false, true, false], 'the only list is well; 2 of 3 daemons died'],
    [[], 'the only list is up to date; no daemon runs: nothing is read by itself'],
    [[false], 'the only list is up to date; the daemon died: nothing is read by itself'],
    [[false, null], 'the only list is up to date; whether a daemon runs, this user cannot see'],
  ])('of daemons that run, died, or cannot be seen: %j', (running, expected) => {
    expect(told(running)).toBe(expected)
  })

  it('says that a daemon died beside what else is wrong', () => {
    expect(told([true, false], [job('acme', 'orders', { overdue: true, next: 'sync' })])).toBe(
      'the only list needs attention (overdue); 1 of 2 daemons died',
    )
  })

  it('does not call a list overdue that was never read', () => {
    const fresh = { overdue: true, next: 'sync', as_of: null, last_run_at: null }
    expect(told([true], [job('acme', 'orders', fresh), job('acme', 'establishments', fresh)])).toBe(
      '2 of 2 lists need attention (2 never read)',
    )
  })
})
