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

  it('sums up those that are well where there are more, and says how to see each', () => {
    const jobs = [
      ...many(9_990),
      ...many(9, 'orders', { as_of: at(8), rows_missed: 2 }),
      ...many(1, 'establishments'),
    ]

    expect(told(jobs)).toEqual([
      `9,999 lists of orders are well, 14,998,500 rows, the oldest as of ${at(8)} (8 minutes ago), the last walk did not see 18 rows`,
      `1 list of establishments is well, 1,500 rows, the oldest as of ${at(5)} (5 minutes ago)`,
      'each of them: admin-mirror query "SELECT * FROM sync_status"',
    ])
  })

  it('says of the sum what the line of a list would say: how fresh new rows are, and what walks miss', () => {
    const refreshed = { refreshed_every_ms: 300_000, fresh_as_of: at(2) }
    const jobs = [
      ...many(90, 'orders', refreshed),
      ...many(3, 'orders', { ...refreshed, fresh_as_of: at(4), expected_missed: 0.25 }),
      ...many(5, 'orders', { fresh_as_of: at(3) }),
      ...many(5, 'orders', { fresh_as_of: at(5), expected_missed: 0.001 }),
    ]

    expect(told(jobs)[0]).toBe(
      `103 lists of orders are well, 154,500 rows, the oldest as of ${at(5)} (5 minutes ago), new rows as of ${at(4)} (4 minutes ago) at the oldest, walks of 3 lists miss items on average`,
    )
  })

  it('says how many of those that are read wait, for how long and for what', () => {
    const wait = (minutes: number, reason: string) => ({
      ...RUNNING,
      waiting_until: at(-minutes),
      waiting_for: reason,
    })
    const lines = told([
      ...many(30, 'orders', RUNNING),
      ...many(20, 'orders', wait(2, 'our own limit')),
      ...many(10, 'orders', wait(9, 'the server asked for a pause')),
      ...many(5, 'orders', wait(1, 'our own limit')),
    ])

    expect(lines[0]).toMatch(/^65 lists of orders are being read, /)
    expect(lines[0]).toContain(
      `, 35 lists wait, until ${at(-9)} (9 minutes) at the latest: the server asked for a pause`,
    )
    const [one] = told([...many(60, 'orders', RUNNING), ...many(1, 'orders', wait(2, 'our own limit'))])
    expect(one).toContain(`, 1 list waits, until ${at(-2)} (2 minutes) at the latest: our own limit`)
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
    expect(lines.at(-2)).toMatch(/^100 lists of orders are well/)
  })

  it('shows whole what is being read, unless that is more than a screenful', () => {
    const few = told([...many(60), ...many(2, 'orders', RUNNING)])
    const lot = told([...many(60), ...many(51, 'orders', RUNNING)])

    expect(few.filter((line) => line.includes('running since'))).toHaveLength(2)
    expect(lot).toHaveLength(3)
    expect(lot[0]).toMatch(/^51 lists of orders are being read/)
  })
})
