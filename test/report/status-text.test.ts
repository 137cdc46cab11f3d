import { describe, expect, it } from 'vitest'
import type { ListFacts, StatusFacts } from '../../src/report/status.ts'
import { pingText, statusText } from '../../src/report/status-text.ts'
import type { StatusRow } from '../../src/store/core/status.ts'
import { at, failedBy, listOf, NOW, statusOf } from '../helpers/status.ts'

function textOf(lists: readonly ListFacts[], more: Partial<StatusFacts> = {}): string {
  return statusText(statusOf(lists, more), 'admin-mirror query')
}

function many(count: number, changed: Partial<StatusRow> = {}, name = 'org'): ListFacts[] {
  return Array.from({ length: count }, (_, index) => listOf(`${name}-${index}`, changed))
}

const HELD = { held_since: at(9), held_reason: 'HTTP 401' }
const RUNNING: Partial<StatusRow> = {
  running: true,
  last_run_at: at(1),
  last_run_status: 'running',
  work: 'schedule',
  walk_origin: 'sync',
  walk_page: 8,
  walk_pages: 7,
  walk_rows_seen: 14,
  walk_total: 20,
}

describe('the text of status', () => {
  it('says how things are, what is wrong, how each list is, and what to do', () => {
    const failed = failedBy('NETWORK', 'acme orders page 3: the network failed (ECONNREFUSED)')

    expect(textOf([listOf('acme', failed), listOf('globex', { fresh_as_of: at(2) })])).toBe(
      `1 of 2 lists needs attention (1 failed: the server could not be reached)
acme orders: failing since ${at(30)} (30 minutes): NETWORK: the network failed (ECONNREFUSED)

acme orders                       1,500 rows  failing             as of 5 minutes ago; next walk in 10 minutes
globex orders                     1,500 rows  read                new rows as of 2 minutes ago, all as of 5 minutes ago; next walk in 10 minutes

mirror: /data/mirror.db
daemon: runs since ${at(90)} (90 minutes), process 1
next: wait: it is tried again by itself
`,
    )
  })

  it('says one cause once, however many lists it has, and since when the first has it', () => {
    const lists = Array.from({ length: 80 }, (_, index) =>
      listOf(`org-${index}`, {
        ...failedBy('NETWORK', `org-${index} orders page ${index}: the network failed (ECONNREFUSED)`),
        failing_since: at(30 - index / 100),
      }),
    )

    const told = textOf(lists).match(/^.*ECONNREFUSED.*$/gm)

    expect(told).toEqual([
      `org-0 orders, org-1 orders, org-2 orders, org-3 orders and 76 more lists: failing since ${at(30)} (30 minutes): NETWORK: the network failed (ECONNREFUSED)`,
    ])
  })

  it.each<[string, Partial<StatusRow>, string]>([
    [
      'a refused token',
      { ...HELD, ...failedBy('UNAUTHORIZED', 'refused') },
      `token refused since ${at(9)} (9 minutes): HTTP 401`,
    ],
    [
      'one that is not held any more',
      failedBy('UNAUTHORIZED', 'refused'),
      `failing since ${at(30)} (30 minutes): UNAUTHORIZED: refused`,
    ],
    [
      'removals by the brake',
      { removals_held: 3, held_why: 'brake' },
      "removals held back: 3 of the list's 1,500 rows left it, and their removal is held back: more than the brake allows in one walk",
    ],
    [
      'an empty list',
      { removals_held: 3, held_why: 'empty' },
      "removals held back: 3 of the list's 1,500 rows left it, and their removal is held back: the list came without items",
    ],
    [
      'a failure without a message, as in a copy',
      { ...failedBy(), failing_message: null },
      `failing since ${at(30)} (30 minutes): NETWORK: the server could not be reached`,
    ],
    [
      'a page that is asked for again',
      { ...RUNNING, retry_since: at(2), retry_error: 'TIMEOUT: acme orders page 8: no answer' },
      `no answer since ${at(2)} (2 minutes): TIMEOUT: no answer`,
    ],
  ])('says once what is wrong: %s', (_, changed, problem) => {
    expect(textOf([listOf('acme', changed)]).match(/^acme orders: .*$/gm)).toEqual([
      `acme orders: ${problem}`,
    ])
  })

  it.each<[string, Partial<StatusRow>, string]>([
    [
      'how far its walk is',
      { ...RUNNING, last_run_pages: 7 },
      `running since ${at(1)}: page 8, 14 of 20 items seen (70 %), about 26 seconds left`,
    ],
    [
      'no time before it is known',
      { ...RUNNING, last_run_pages: 2 },
      `running since ${at(1)}: page 8, 14 of 20 items seen (70 %)`,
    ],
    [
      'where it stopped',
      {
        ...RUNNING,
        running: false,
        last_run_status: 'interrupted',
        error_code: 'INTERRUPTED',
        error_message: 'stopped',
      },
      'stopped: page 8, 14 of 20 items seen (70 %); the next run continues there',
    ],
    [
      'that it waits',
      { ...RUNNING, waiting_until: at(-1), waiting_for: 'the rate limit' },
      `waits until ${at(-1)} (60 seconds): the rate limit`,
    ],
    [
      'the last page of a run that this user cannot see',
      { ...RUNNING, running: null, walk_updated_at: at(1) },
      `began ${at(1)}, last page written ${at(1)}: page 8, 14 of 20 items seen (70 %); this user cannot see whether it still runs`,
    ],
    ['a verify', { running: true, work: 'verify' }, 'being compared (verify)'],
    [
      'rows held back behind a refused token',
      { ...HELD, removals_held: 3, held_why: 'brake' },
      "3 of the list's 1,500 rows left it, and their removal is held back: more than the brake allows in one walk",
    ],
    [
      'an error after which it is not failing',
      { error_code: 'NETWORK', error_message: 'away' },
      'last run 5 minutes ago: NETWORK: away',
    ],
    [
      'rows that were missed once',
      { rows_missed: 12 },
      'the last walk did not see 12 rows; what the next walk does not see either is removed, or held back',
    ],
    ['a walk that is not trusted', { untrusted: 'it ended' }, 'its last walk removed nothing: it ended'],
  ])('notes of a list: %s', (_, changed, note) => {
    expect(textOf([listOf('acme', changed)]).split('\n')).toContain(`    ${note}`)
  })

  it.each<[string, Partial<StatusRow>, next: string]>([
    ['that nobody reads', {}, 'admin-mirror sync --org acme'],
    ['that is being read', { running: true, last_run_status: 'running' }, 'wait for the runs in progress'],
  ])('says of a list %s that it is older than --max-age and --fresh', (_, changed, next) => {
    const age = { typed: '1m', ms: 60_000 }

    const text = textOf([listOf('acme', { ...changed, fresh_as_of: at(5) })], { maxAge: age, fresh: age })

    expect(text).toMatch(/^the only list is older than 1m\n/)
    expect(text).toContain('\n    too old: --max-age is 1m\n')
    expect(text).toContain(`\n    too stale: rows added after ${at(5)} may be missing, and --fresh is 1m\n`)
    expect(text).toContain(`next: ${next}\n`)
  })

  it('takes a time in the future for no sign of freshness, and says so', () => {
    const age = { typed: '2h', ms: 7_200_000 }
    const ahead = { as_of: at(-9000), fresh_as_of: at(-9000), last_sync_finished_at: at(-9000) }

    const status = statusOf([listOf('acme', ahead)], { maxAge: age, fresh: age })

    expect(status.jobs[0]).toMatchObject({ too_old: true, too_stale: true, overdue: true })
    expect(status.check_exit_code).toBe(1)
    expect(statusText(status, '')).toContain(
      '    read by a clock that was ahead: its times are in the future',
    )
  })

  it('counts those that are well where there are more than a screenful, and shows the others', () => {
    const text = textOf([
      ...many(60),
      listOf('troubled', failedBy()),
      ...many(51, RUNNING, 'busy'),
      ...many(40, {}, 'b'),
    ])

    expect(text.match(/^troubled orders +1,500/gm)).toHaveLength(1)
    expect(text.match(/running since/g)).toHaveLength(50)
    expect(text).toContain('101 more lists, read or being read as they should be: admin-mirror query')
    expect(textOf(many(9_990))).toContain('\n9,990 lists, read or being read as they should be: ')
  })

  it('names at most five steps', () => {
    const lists = many(7, HELD)

    expect(textOf(lists)).toMatch(/\nnext: give org-0 .*\n {6}give org-1 (.*\n){4} {6}\.\.\. and 2 more\n$/)
  })

  it('of a file alone says neither that it is well nor that a daemon is missing', () => {
    const text = textOf([listOf('acme', {}, { plan: null })], { config: null, daemons: [] })

    expect(text).toContain('the only list was read whole\n')
    expect(text).toContain('daemon: none is known to use this file\n')
  })

  it('names each column whose values did not fit', () => {
    const misfits = [1, 2].map((rows) => ({ collection: 'orders', column: `c${rows}__text`, rows }))

    expect(statusOf([listOf('acme')], { misfits }).notes).toEqual([
      'orders.c1__text has the values of 1 row that did not fit the column beside it',
      'orders.c2__text has the values of 2 rows that did not fit the column beside it',
    ])
  })

  it('tells a ping each cause once, without what a server said', () => {
    const status = statusOf([
      listOf('acme'),
      ...['globex', 'initech'].map((name) => listOf(name, failedBy('FORBIDDEN', 'Mr Item'))),
      listOf('hooli', {}, { plan: { schedule: '* * * * *', nextRunAt: null, dueAt: NOW - 600_000 } }),
      listOf('tyrell', failedBy('OF_LATER', 'Mr Item')),
    ])

    expect(pingText(status).split('\n')).toEqual([
      '4 of 5 lists need attention (3 failed, 1 overdue)',
      `globex orders, initech orders: failing since ${at(30)} (30 minutes): FORBIDDEN (the token has no access to this organization)`,
      `tyrell orders: failing since ${at(30)} (30 minutes): OF_LATER`,
      `hooli orders: overdue since ${at(10)} (10 minutes): by its schedule (* * * * *) it should have been read`,
    ])
  })

  it('counts the lists of one limit together for the time that is left', () => {
    const read = {
      ...RUNNING,
      last_run_at: at(10),
      last_run_pages: 100,
      last_run_waited_ms: 590_000,
      walk_pages: 100,
    }
    const walk = { ...read, walk_rows_seen: 2500, walk_total: 5000 }
    const [one, two] = [1, 2].map((count) =>
      statusOf(
        [
          listOf('acme', walk, { perMinute: 10, budget: 'x' }),
          listOf('globex', walk, { perMinute: 10, budget: 'x' }),
        ].slice(0, count),
      ).jobs.map((job) => job.walk_left_ms),
    )

    expect([one, two]).toEqual([[600_000], [1_200_000, 1_200_000]])
    expect(NOW).toBeGreaterThan(0)
  })
})
