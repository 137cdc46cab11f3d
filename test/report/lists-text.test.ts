import { describe, expect, it } from 'vitest'
import { createStatus, type JobStatus } from '../../src/report/status.ts'
import { listsText } from '../../src/report/status-text.ts'
import { at, failedBy, job, NOTHING_TOLD, NOW } from '../listener/overviews.ts'

function told(jobs: readonly JobStatus[], isDaemonRunning = true): string[] {
  const facts = {
    ...NOTHING_TOLD,
    database: '/data/mirror.db',
    now: new Date(NOW).toISOString(),
    timezone: 'UTC',
    queue: null,
    waiting_until: null,
    max_age: '1h',
    fresh: '1h',
    jobs: [...jobs],
  }
  const daemons = [{ pid: 1, since: at(90), running: isDaemonRunning }]
  return listsText(createStatus(facts, daemons), 'admin-mirror query')
}

function many(count: number, collection = 'orders', more: Partial<JobStatus> = {}): JobStatus[] {
  return Array.from({ length: count }, (_, index) => job(`org-${index}`, collection, more))
}

const failing = (error: string) => `failing since ${at(30)} (30 minutes): ${error}`

const RUNNING: Partial<JobStatus> = {
  running: true,
  last_run_status: 'running',
  last_run_trigger: 'schedule',
}

describe('the lists in the text of status', () => {
  it('has a line for each of a screenful', () => {
    expect(told(many(50))).toHaveLength(50)
  })

  const WHOLE = `as of ${at(5)} (5 minutes ago)`

  it.each<[string, Partial<JobStatus>, boolean, string]>([
    [
      'how often they are read',
      { fresh_as_of: at(2), refreshed_every_ms: 60_000 },
      true,
      ', read every 60 seconds',
    ],
    ['no interval without a daemon', { fresh_as_of: at(2), refreshed_every_ms: 60_000 }, false, ''],
    ['no interval without refreshes', { fresh_as_of: at(2), refreshed_every_ms: null }, true, ''],
  ])('says how fresh its newest rows are: %s', (_what, fresh, isDaemonRunning, interval) => {
    expect(told([job('acme', 'orders', fresh)], isDaemonRunning)[0]).toContain(
      ` rows  new rows as of 2 minutes ago${interval}, whole ${WHOLE}`,
    )
  })

  it('says nothing of newest rows that are no fresher than the whole list', () => {
    const [line] = told([job('acme', 'orders', { fresh_as_of: at(5), refreshed_every_ms: 60_000 })])

    expect(line).toContain(` rows  ${WHOLE}`)
    expect(line).not.toContain('new rows')
  })

  it.each<[what: string, job: Partial<JobStatus>, isDaemonRunning: boolean, next: string]>([
    ['says when it comes', {}, true, ', next in 10 minutes'],
    ['without a time says nothing', { next_run_at: null }, true, ''],
    ['that goes on says nothing', { running: true }, true, ''],
    ['with a held token says nothing', { held_since: at(9) }, true, ''],
    ['that nobody begins says nothing', {}, false, ''],
  ])('the next reading %s', (_what, more, isDaemonRunning, next) => {
    const [line = ''] = told([job('acme', 'orders', more)], isDaemonRunning)

    expect(line.slice(line.indexOf(', steady') + ', steady'.length)).toBe(next)
  })

  const HELD = { held_since: at(9), held_reason: 'HTTP 401' }
  const IS_HELD = `held since ${at(9)}: HTTP 401`

  it.each<[string, Partial<JobStatus>, string[]]>([
    ['a refused token', { ...HELD, ...failedBy('UNAUTHORIZED', 'refused') }, [IS_HELD]],
    [
      'a refused token that is not held any more',
      failedBy('UNAUTHORIZED', 'refused'),
      [failing('UNAUTHORIZED: refused')],
    ],
    ['another failure of a held token', { ...HELD, ...failedBy() }, [IS_HELD, failing('NETWORK: away')]],
    [
      'removals that are held back',
      { removals_held: 3, held_why: 'brake', error_code: 'REMOVALS_HELD' },
      ['3 of these 1,500 rows left the list and are held back: more than the brake allows in one walk'],
    ],
    [
      'an error after which the list is not failing',
      { error_code: 'NETWORK', error_message: 'away' },
      ['last run 5 minutes ago: NETWORK: away'],
    ],
  ])('says once what is wrong: %s', (_what, more, notes) => {
    const [, ...lines] = told([job('acme', 'orders', more)])

    expect(lines.map((line) => line.trim())).toEqual(notes)
  })

  it('says of an error without a message, as in a copy for readers, its code alone', () => {
    const failed = { ...failedBy('NETWORK'), failing_message: null }

    expect(told([job('acme', 'orders', failed)])[1]?.trim()).toBe(
      `failing since ${at(30)} (30 minutes): NETWORK`,
    )
  })

  it('counts those that are well where there are more, and says how to see each', () => {
    expect(told([...many(9_990), ...many(10, 'establishments', { rows_missed: 2 })])).toEqual([
      '10,000 lists, read or being read as they should be: admin-mirror query "SELECT * FROM sync_status"',
    ])
  })

  it.each<[string, Partial<JobStatus>]>([
    ['has a next step', { next: 'admin-mirror sync' }],
    ['was never read whole', { as_of: null }],
    ['failed', failedBy()],
    ['has removals held back', { removals_held: 1 }],
    ['is overdue', { overdue: true, due_at: at(9) }],
    ['is too old', { too_old: true }],
    ['is no longer configured', { configured: false, forget: 'admin-mirror forget' }],
    ['was interrupted', { last_run_status: 'interrupted' }],
    ['waits though nobody reads it', { waiting_until: at(-9), waiting_for: 'the rate limit' }],
    ['was read, but something may be missing', { untrusted: 'it met a new reject' }],
  ])('shows whole, and first, one that %s', (_what, more) => {
    const lines = told([...many(60), job('troubled', 'orders', more), ...many(40)])

    expect(lines[0]).toMatch(/^troubled orders/)
    expect(lines.at(-1)).toMatch(/^100 more lists, read or being read as they should be/)
  })

  it('shows those that are being read, at most a screenful', () => {
    const few = told([...many(60), ...many(2, 'orders', RUNNING)])
    const lot = told([...many(60), ...many(51, 'orders', RUNNING)])

    expect(few.filter((line) => line.includes('running since'))).toHaveLength(2)
    expect(lot.filter((line) => line.includes('running since'))).toHaveLength(50)
    expect(lot.at(-1)).toMatch(/^61 more lists, /)
  })
})
