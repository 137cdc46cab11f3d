import { expect, it } from 'vitest'
import { statusText } from '../../src/report/status-text.ts'
import type { StatusRow } from '../../src/store/core/status.ts'
import { at, failedBy, HELD, listOf, NEVER, RUNNING, statusOf, TOKEN } from '../helpers/status.ts'

const STAY = 'they stay in the mirror until somebody decides'
const WAITING: Partial<StatusRow> = { waiting_until: at(-2), waiting_for: 'the rate limit' }
const WAITS = `waits until ${at(-2)} (2 minutes): the rate limit`
const SINCE = `running since ${at(1)}`

it.each<[Partial<StatusRow>, problem: string]>([
  [failedBy(), `failing since ${at(30)} (30 minutes): NETWORK: away`],
  [
    { ...failedBy(), failing_message: null },
    `failing since ${at(30)} (30 minutes): NETWORK: the server could not be reached`,
  ],
  // What to type then is told by the next step.
  [
    failedBy('UNAUTHORIZED', 'HTTP 401. Nothing more is sent with it. Put a new'),
    `failing since ${at(30)} (30 minutes): UNAUTHORIZED: HTTP 401.`,
  ],
  [
    { ...TOKEN, ...HELD, ...failedBy('UNAUTHORIZED', 'refused') },
    `token refused since ${at(9)} (9 minutes): HTTP 401`,
  ],
  // As in a copy.
  [{ held_since: at(9) }, `token refused since ${at(9)} (9 minutes): its token was refused`],
  [
    HELD,
    `removals held back: the API no longer lists 300 of the 1,500 rows, and ${STAY}, since so many left at once: more than removals.brakePercent and brakeRows allow, or all of them`,
  ],
  [
    { ...HELD, rows: 300, held_out_of_scope: 300 },
    `removals held back: the API no longer lists 300 of the 300 rows since its filters or its path were changed, and ${STAY}, since so many left at once: more than removals.brakePercent and brakeRows allow, or all of them`,
  ],
  // So that the lists of a token are told together, whatever kept some of them from being read before.
  [{ ...TOKEN, ...failedBy('FORBIDDEN', 'not yours') }, `token refused since ${at(9)} (9 minutes): HTTP 401`],
  // Without the list and its page, so that lists with one cause are told together.
  [
    { ...RUNNING, retry_since: at(2), retry_error: 'TIMEOUT: acme orders page 8: no answer: gone' },
    `no answer since ${at(2)} (2 minutes): TIMEOUT: no answer: gone`,
  ],
  [NEVER, 'never read: no run has begun'],
  [{ last_sync_finished_at: null, as_of: null }, 'overdue: no run has come to an end by now'],
  [{ last_sync_finished_at: at(-9000), as_of: at(-9000) }, 'overdue: no run has come to an end by now'],
  [{ untrusted: 'it ended' }, 'uncertain: its last walk removed nothing: it ended'],
])('what is wrong with a list is told with its cause, and since when: %j', (changed, problem) => {
  const text = statusText(statusOf([listOf('acme', changed)]), 'admin-mirror query')

  expect(text.match(/^acme orders: .*$/gm)).toEqual([`acme orders: ${problem}`])
})

it.each<[Partial<StatusRow>, notes: string[]]>([
  [{}, []],
  [RUNNING, [`${SINCE}: page 8, 14 of 20 items seen (70 %), about 30 seconds left`]],
  [{ ...RUNNING, walk_origin: null, walk_total: null }, [SINCE]],
  [
    { ...RUNNING, walk_origin: 'backfill', walk_page: null, walk_total: null },
    [`${SINCE}: a backfill at all pages read, 14 items seen`],
  ],
  [
    { ...RUNNING, running: false, last_run_status: 'failed', ...WAITING },
    ['stopped: page 8, 14 of 20 items seen (70 %)', WAITS],
  ],
  [
    { ...RUNNING, running: false, walk_origin: 'backfill' },
    ['stopped: a backfill at page 8, 14 of 20 items seen (70 %)'],
  ],
  [{ running: true }, ['about to begin']],
  [{ ...RUNNING, work: 'verify' }, ['being compared (verify)']],
  [{ ...RUNNING, work: 'refresh' }, ['being refreshed']],
  [{ ...RUNNING, ...WAITING }, [`${SINCE}: page 8, 14 of 20 items seen (70 %), about 2 minutes left`, WAITS]],
  // It is over, or of no run of now, or a wrong clock wrote it.
  [{ running: true, ...WAITING, waiting_until: at(0) }, ['about to begin']],
  [WAITING, []],
  [{ running: true, ...WAITING, waiting_until: at(-1441) }, ['about to begin']],
  [
    { ...TOKEN, ...HELD },
    [
      `the API no longer lists 300 of the 1,500 rows, and ${STAY}, since so many left at once: more than removals.brakePercent and brakeRows allow, or all of them`,
    ],
  ],
  [
    { ...RUNNING, running: false, configured: 0 },
    [
      'no longer in the configuration; its rows stay, or go with: admin-mirror forget --org 00000000-0000-4000-8000-acme00000000 --collection orders --yes',
      'stopped: page 8, 14 of 20 items seen (70 %)',
    ],
  ],
])(
  'beside it, how far a walk is, what it waits for, and what else is worth knowing: %j',
  (changed, notes) => {
    const [job] = statusOf([listOf('acme', changed)]).jobs

    expect(job?.notes).toEqual(notes)
    expect(job?.walk_left_ms === null).toBe(!/about .* left/.test(notes.join()))
  },
)

it.each<[Partial<StatusRow>, isOld: boolean, next: string | null]>([
  [{ fresh_as_of: at(5) }, true, 'admin-mirror sync --org acme'],
  [{ fresh_as_of: at(5), running: true }, true, null],
  // The clock of who read it was ahead.
  [{ as_of: at(-9000), fresh_as_of: at(-9000) }, true, 'admin-mirror sync --org acme'],
  [{ as_of: at(1), fresh_as_of: at(1) }, false, null],
  [{ configured: 0 }, false, null],
])('it is older than --max-age and --fresh, or not: %j', (changed, isOld, next) => {
  const age = { typed: '1m', ms: 60_000 }

  const { jobs, next: steps } = statusOf([listOf('acme', changed)], { maxAge: age, fresh: age })

  expect(jobs[0]).toMatchObject({ too_old: isOld, too_stale: isOld })
  expect(jobs[0]?.notes.join().includes('older than --max-age 1m,older than --fresh 1m: rows')).toBe(isOld)
  expect(steps[0]?.command ?? null).toBe(next)
})

it('beside all lists is told what was not published, and which values did not fit', () => {
  const misfits = [{ collection: 'orders', column: 'c__text', rows: 2 }]

  expect(statusOf([listOf('acme')], { misfits, unpublished: 'copy.db: EROFS' }).notes).toEqual([
    'nothing could be published: copy.db: EROFS',
    'orders.c__text has the values of 2 rows that did not fit the column beside it',
  ])
})
