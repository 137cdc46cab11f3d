import { describe, expect, it } from 'vitest'
import type { ListFacts, StatusFacts } from '../../src/report/status.ts'
import { alarmText, statusText } from '../../src/report/status-text.ts'
import type { StatusRow } from '../../src/store/core/status.ts'
import { fullDisk } from '../../src/store/sqlite/errors.ts'
import { at, failedBy, listOf, NEVER, NOW, statusOf } from '../helpers/status.ts'

function textOf(lists: readonly ListFacts[], more: Partial<StatusFacts> = {}): string {
  return statusText(statusOf(lists, more), 'admin-mirror query')
}

function many(count: number, changed: Partial<StatusRow> = {}): ListFacts[] {
  return Array.from({ length: count }, (_, index) => listOf(`org-${index}`, changed))
}

const TOKEN = { held_since: at(9), held_reason: 'HTTP 401' }
const HELD: Partial<StatusRow> = { removals_held: 300, held_why: 'brake' }
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
const AHEAD =
  'read by a clock that was ahead: its times are in the future, and say nothing of how fresh it is'
const AWAY = 'acme orders page 3: the network failed (ECONNREFUSED)'

describe('the text of status, as it is read in ten seconds', () => {
  it.each<[string, ListFacts[], Partial<StatusFacts>, text: string]>([
    [
      'well',
      [
        listOf('acme', { fresh_as_of: at(2) }),
        listOf('globex'),
        listOf('hooli', { ...RUNNING, work: 'refresh' }),
      ],
      {},
      `all 3 lists are well

acme orders                       1,500 rows  read                new rows as of 2 minutes ago, all as of 5 minutes ago; next walk in 10 minutes
globex orders                     1,500 rows  read                as of 5 minutes ago; next walk in 10 minutes
hooli orders                      1,500 rows  being read          as of 5 minutes ago
    being refreshed

mirror: /data/mirror.db
daemon: runs since ${at(90)} (90 minutes), process 1
next: nothing to do; ask the mirror with admin-mirror query "SELECT * FROM sync_status"
`,
    ],
    [
      'a first sync',
      [
        listOf('acme', { ...RUNNING, as_of: null, rows: 14, last_run_pages: 7 }),
        listOf('globex', { ...NEVER, rows: 0, running: true }),
      ],
      { daemons: [] },
      `all 2 lists are being read for the first time

acme orders                          14 rows  first reading       never read whole
    running since ${at(1)}: page 8, 14 of 20 items seen (70 %), about 26 seconds left
globex orders                         0 rows  first reading       never read
    about to begin

mirror: /data/mirror.db
daemon: none runs; a command is at work
next: wait for the runs in progress
`,
    ],
    [
      'the API is down',
      [listOf('acme', failedBy('NETWORK', AWAY)), listOf('globex', failedBy('NETWORK', AWAY.slice(20)))],
      {},
      `all 2 lists need attention (2 failed: the server could not be reached)
acme orders, globex orders: failing since ${at(30)} (30 minutes): NETWORK: the network failed (ECONNREFUSED)

acme orders                       1,500 rows  failing             as of 5 minutes ago; next walk in 10 minutes
globex orders                     1,500 rows  failing             as of 5 minutes ago; next walk in 10 minutes

mirror: /data/mirror.db
daemon: runs since ${at(90)} (90 minutes), process 1
next: wait: it is tried again by itself
`,
    ],
    [
      'a refused token',
      [listOf('acme', TOKEN, { tokenPlace: '/run/secrets/acme' }), listOf('globex')],
      {},
      `1 of 2 lists needs attention (1 held for a refused token)
acme orders: token refused since ${at(9)} (9 minutes): HTTP 401

acme orders                       1,500 rows  token refused       as of 5 minutes ago
globex orders                     1,500 rows  read                as of 5 minutes ago; next walk in 10 minutes

mirror: /data/mirror.db
daemon: runs since ${at(90)} (90 minutes), process 1
next: give acme a new token (/run/secrets/acme), or if the old one is valid again: admin-mirror resume --org acme
`,
    ],
    [
      'removals that are held back',
      [listOf('acme', HELD)],
      {},
      `the only list needs attention (with removals held back)
acme orders: removals held back: 300 of the list's 1,500 rows are no longer in it, and stay in the mirror until somebody decides: more than one walk may remove

acme orders                       1,500 rows  removals held back  as of 5 minutes ago; next walk in 10 minutes

mirror: /data/mirror.db
daemon: runs since ${at(90)} (90 minutes), process 1
next: see with admin-mirror verify --org acme --collection orders whether these rows really left the list (it writes nothing); only if they did: admin-mirror sync --org acme --collection orders --accept-removals
`,
    ],
    [
      // Nothing comes of the work that the mirror tells of, and none could write down that it runs.
      'a full disk',
      [
        listOf('acme', {
          ...RUNNING,
          waiting_until: at(-5),
          waiting_for: 'the rate limit',
          retry_since: at(1),
        }),
      ],
      { unusable: fullDisk('/data/mirror.db', 4096), daemons: [] },
      `the disk of /data/mirror.db is full (4,096 bytes are left, and 1,000,000 are needed), so nothing can be written: make room

acme orders                       1,500 rows  unfinished          as of 5 minutes ago
    stopped: page 8, 14 of 20 items seen (70 %); the next run continues there

mirror: /data/mirror.db
daemon: unknown: one that runs could not write that down
next: mend that: a daemon that runs then goes on by itself, and what the mirror holds can be queried meanwhile
`,
    ],
  ])('%s', (_, lists, facts, text) => {
    expect(textOf(lists, facts)).toBe(text)
  })

  it('names four lists that have one cause, ten steps, and fifty lists, the gravest first', () => {
    const failing = many(80, failedBy()).map((list, index) => ({
      ...list,
      row: { ...list.row, failing_since: at(30 - index / 100) },
    }))

    expect(textOf([...failing, listOf('held', TOKEN)])).toMatch(
      `\norg-0 orders, org-1 orders, org-2 orders, org-3 orders, ... and 76 more lists: failing since ${at(30)} (30 minutes): NETWORK: away\n`,
    )
    expect(textOf(many(12, TOKEN))).toMatch(
      /\nnext: give org-0 .*\n {6}give org-1 (.*\n){9} {6}\.\.\. and 2 more steps\n$/,
    )
    const old = listOf('zoo', { as_of: at(120) })
    const maxAge = { typed: '1h', ms: 3_600_000 }
    const whole = textOf([...many(60), old, listOf('troubled', failedBy())], { maxAge })
    expect(whole.match(/^\S+ orders +1,500 rows/gm)).toHaveLength(51)
    expect(whole).toContain('    older than --max-age 1h\n')
    expect(whole).toMatch(/^troubled orders +1,500 rows/m)
    expect(whole).toContain(
      '\nand 11 more lists, as they should be: admin-mirror query "SELECT * FROM sync_status"\n',
    )
  })

  it('of a file alone says neither that it is well nor that a daemon is missing', () => {
    const text = textOf([listOf('acme', { running: null }, { plan: null })], { config: null, daemons: [] })

    expect(text).toContain('the only list was read whole\n')
    expect(text).toContain('daemon: none is known to use this file\n')
  })

  it('says who died, and who runs', () => {
    const daemons = [true, false].map((running, pid) => ({ pid, since: at(90), running, outdated: false }))

    expect(textOf([listOf('acme')], { daemons })).toContain(
      `daemon: runs since ${at(90)} (90 minutes), process 0; process 1, running since ${at(90)} (90 minutes), died without being stopped\n`,
    )
  })

  it('tells a monitor each cause once and what to do, without what a server said', () => {
    const status = statusOf([
      listOf('acme'),
      ...['globex', 'initech'].map((name) => listOf(name, failedBy('FORBIDDEN', 'Mr Item'))),
      listOf('hooli', {}, { plan: { schedule: '* * * * *', nextRunAt: null, dueAt: NOW - 600_000 } }),
      listOf('tyrell', failedBy('OF_LATER', 'Mr Item')),
      listOf('umbrella', { untrusted: 'Mr Item' }),
      listOf('wonka', HELD),
    ])

    expect(alarmText(status).split('\n')).toEqual([
      '5 of 7 lists need attention (1 with removals held back, 3 failed, 1 overdue)',
      'wonka orders: removals held back: REMOVALS_HELD (removals are held back: somebody has to decide)',
      `globex orders, initech orders: failing since ${at(30)} (30 minutes): FORBIDDEN (the token has no access to this organization)`,
      `tyrell orders: failing since ${at(30)} (30 minutes): OF_LATER`,
      `hooli orders: overdue since ${at(10)} (10 minutes): by its schedule (* * * * *) it should have been read`,
      expect.stringMatching(/^next: see with .* --org wonka --collection orders --accept-removals$/),
      'next: look at the error, then: admin-mirror sync --org globex --org initech --org tyrell',
      'next: admin-mirror sync --org hooli',
    ])
  })
})

describe('what is said of a list', () => {
  it.each<[Partial<StatusRow>, problem: string]>([
    [
      { ...TOKEN, ...HELD, ...failedBy('UNAUTHORIZED', 'refused') },
      `token refused since ${at(9)} (9 minutes): HTTP 401`,
    ],
    [
      failedBy('UNAUTHORIZED', 'HTTP 401. Nothing more is sent with it. Put a new'),
      `failing since ${at(30)} (30 minutes): UNAUTHORIZED: HTTP 401.`,
    ],
    [
      { ...HELD, held_why: 'empty', held_out_of_scope: 300 },
      "removals held back: 300 of the list's 1,500 rows are no longer in it since its filters or its path were changed, and stay in the mirror until somebody decides: the list came without items",
    ],
    [
      { ...failedBy(), failing_message: null },
      `failing since ${at(30)} (30 minutes): NETWORK: the server could not be reached`,
    ],
    [
      { ...RUNNING, retry_since: at(2), retry_error: 'TIMEOUT: acme orders page 8: no answer: gone' },
      `no answer since ${at(2)} (2 minutes): TIMEOUT: no answer: gone`,
    ],
    // As in a copy.
    [{ held_since: at(9) }, `token refused since ${at(9)} (9 minutes): its token was refused`],
    [NEVER, 'never read: no run has begun'],
    [{ last_sync_finished_at: null, as_of: null }, 'overdue: no run has come to an end'],
    [{ last_sync_finished_at: at(-9000), as_of: at(-9000) }, `overdue: ${AHEAD}`],
    [{ untrusted: 'it ended' }, 'uncertain: its last walk removed nothing: it ended'],
  ])('that is wrong with it: %j', (changed, problem) => {
    expect(textOf([listOf('acme', changed)]).match(/^acme orders: .*$/gm)).toEqual([
      `acme orders: ${problem}`,
    ])
  })

  it.each<[Partial<StatusRow>, note: string]>([
    [{ ...RUNNING, last_run_pages: 2 }, `running since ${at(1)}: page 8, 14 of 20 items seen (70 %)`],
    [{ ...RUNNING, walk_origin: null }, `running since ${at(1)}`],
    [
      { ...RUNNING, walk_origin: 'backfill', walk_page: null, walk_total: null },
      `running since ${at(1)}: a backfill at all pages read, 14 items seen`,
    ],
    [
      { ...RUNNING, running: false, walk_origin: 'backfill' },
      'stopped: a backfill at page 8, 14 of 20 items seen (70 %)',
    ],
    [
      { ...RUNNING, waiting_until: at(-1), waiting_for: 'the rate limit' },
      `waits until ${at(-1)} (60 seconds): the rate limit`,
    ],
    [{ ...RUNNING, running: false, configured: 0 }, 'stopped: page 8, 14 of 20 items seen (70 %)'],
    [{ running: true, work: 'verify' }, 'being compared (verify)'],
    [
      { ...TOKEN, ...HELD },
      "300 of the list's 1,500 rows are no longer in it, and stay in the mirror until somebody decides: more than one walk may remove",
    ],
    [{ fresh_as_of: at(-9000) }, AHEAD],
    [{ error_code: 'NETWORK', error_message: 'away' }, 'last run 5 minutes ago: NETWORK: away'],
    [
      { configured: 0 },
      `no longer in the configuration; its rows stay, or go with: admin-mirror forget --org 00000000-0000-4000-8000-acme00000000 --collection orders --yes`,
    ],
  ])('beside it: %j', (changed, note) => {
    expect(textOf([listOf('acme', changed)]).split('\n')).toContain(`    ${note}`)
  })

  it.each<[Partial<StatusRow>, next: string, isOld: boolean]>([
    [{ fresh_as_of: at(5) }, 'admin-mirror sync --org acme', true],
    [{ fresh_as_of: at(5), running: true }, 'wait for the runs in progress', true],
    // The clock of who read it was ahead.
    [{ as_of: at(-9000), fresh_as_of: at(-9000) }, 'admin-mirror sync --org acme', true],
    [{ as_of: at(1), fresh_as_of: at(1) }, 'nothing to do', false],
    [{ configured: 0 }, 'nothing to do', false],
  ])('that is older than --max-age and --fresh: %j', (changed, next, isOld) => {
    const age = { typed: '1m', ms: 60_000 }
    const facts = { maxAge: age, fresh: age }

    const { jobs, verdict } = statusOf([listOf('acme', changed)], facts)

    expect(jobs[0]).toMatchObject({ too_old: isOld, too_stale: isOld })
    expect(verdict === 'the only list is older than --max-age or --fresh allows').toBe(isOld)
    expect(jobs[0]?.notes.join().includes('older than --max-age 1m,older than --fresh 1m: rows')).toBe(isOld)
    expect(textOf([listOf('acme', changed)], facts)).toContain(`next: ${next}`)
  })

  it.each<[Partial<StatusRow>, isTold: boolean]>([
    [{ running: true }, true],
    [{ last_run_status: 'failed' }, true],
    [{}, false],
    [{ running: true, waiting_until: at(0) }, false],
    // A wrong clock wrote it.
    [{ running: true, waiting_until: at(-1441) }, false],
  ])('has a wait while it lasts, if the list is being read or its last run failed: %j', (changed, isTold) => {
    const [job] = statusOf([listOf('acme', { waiting_until: at(-9), ...changed })]).jobs

    expect(job?.waiting_until).toBe(isTold ? at(-9) : null)
  })
})

const refreshed = (every: number | null, budget = 'a', organization = 'acme', share: number | null = 5.854) =>
  listOf(organization, {
    refresh_budget: budget,
    refreshed_every_ms: every === null ? null : every * 60_000,
    refresh_share: share,
  })

describe('the notes', () => {
  it('name columns whose values did not fit, what the share of refreshes carries, and that nothing is published', () => {
    const misfits = [{ collection: 'orders', column: 'c__text', rows: 2 }]
    const lists = [
      ...[5, 44, null].map((every) => refreshed(every)),
      refreshed(15, 'a', 'globex'),
      refreshed(5, 'b'),
      refreshed(3, 'b', 'acme', null),
      refreshed(3, 'c', 'acme', null),
      refreshed(5, 'd'),
    ]

    expect(statusOf(lists, { misfits, unpublished: 'copy.db: EROFS' }).notes).toEqual([
      'nothing could be published: copy.db: EROFS',
      'orders.c__text has the values of 2 rows that did not fit the column beside it',
      '3 lists of acme, globex share 6 requests a minute for refreshes: newest ends every 5 minutes to 44 minutes, the rest for older pages',
      '2 lists of acme share 6 requests a minute for refreshes: newest ends every 3 minutes to 5 minutes, the rest for older pages',
      '1 list of acme has 6 requests a minute for refreshes: newest ends every 5 minutes, the rest for older pages',
    ])
    expect(textOf(lists, { unpublished: 'EROFS' })).toContain('\nnote: nothing could be published: EROFS\n')
    expect(statusOf(lists, { daemons: [] }).notes).toEqual([])
  })
})

it.each<[string, Partial<StatusRow>, left: number | null]>([
  ['goes by its run and its limit', { last_run_waited_ms: 30_000 }, 90_000],
  ['is at least its wait', { waiting_until: at(-2) }, 120_000],
  ['is not known before the length of the list is', { walk_total: null }, null],
  ['is not known while a page fails', { retry_since: at(1) }, null],
  ['is not that of a verify', { work: 'verify' }, null],
  ['is not that of a refresh', { work: 'refresh' }, null],
  ['is not that of a run that has ended', { running: false }, null],
])('the time that a walk still takes %s', (_, changed, left) => {
  const list = listOf('acme', { ...RUNNING, last_run_pages: 6, ...changed }, { perMinute: 2 })

  expect(statusOf([list]).jobs[0]?.walk_left_ms).toBe(left)
})
