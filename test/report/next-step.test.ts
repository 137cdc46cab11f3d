import { describe, expect, it } from 'vitest'
import { backfillOf } from '../../src/report/next-step.ts'
import type { ListFacts } from '../../src/report/status.ts'
import { stepText } from '../../src/report/status-text.ts'
import type { StatusRow } from '../../src/store/core/status.ts'
import { at, failedBy, listOf, NOW, never, statusOf } from '../helpers/status.ts'

const SYNC = 'admin-mirror sync --org acme'
const BACKFILL = 'admin-mirror backfill --org acme --collection orders --filter state=paid'
const STOPPED_BACKFILL: Partial<StatusRow> = {
  last_run_trigger: 'backfill',
  last_run_status: 'interrupted',
  walk_origin: 'backfill',
  walk_kind: 'partial',
  walk_filters: '{"state":"paid"}',
  walk_first_page: 1,
  walk_page: 3,
}
const NEVER = { as_of: null, last_run_at: null, last_sync_finished_at: null }

/** Of a mirror that no daemon serves. */
function stepsOf(...lists: ListFacts[]): string[] {
  return statusOf(lists, { daemons: [] }).next.map(stepText)
}

describe('the next step', () => {
  it.each<[string, Partial<StatusRow>, string | null]>([
    ['of a list that was read whole', {}, null],
    ['of one that was never read', NEVER, SYNC],
    [
      'of one whose token was refused',
      { held_since: at(9) },
      'give acme a new token (/run/secrets/acme), or if the old one is valid again: admin-mirror resume --org acme',
    ],
    [
      'of one of which rows are held back',
      { removals_held: 3, held_why: 'brake' },
      'look whether these rows really left the list (verify compares it with the API), then: admin-mirror sync --org acme --collection orders --accept-removals',
    ],
    ['of one that is being read', { as_of: null, last_run_status: 'running', running: true }, null],
    [
      'of one that failed and is tried again',
      { ...failedBy(), running: true },
      'wait: it is tried again by itself',
    ],
    ['of one that the API did not answer', failedBy('TIMEOUT'), `when the API answers again: ${SYNC}`],
    ['of one that failed otherwise', failedBy('BAD_RESPONSE'), `look at the error, then: ${SYNC}`],
    [
      'of one of which three runs stopped at the same page',
      { ...failedBy('SERVER_ERROR'), walk_page: 1200, walk_stops: 2 },
      'page 1,200 failed in each of the last 3 runs, and the pages before it did not: until the API mends it, those behind it can be tried with: admin-mirror backfill --org acme --collection orders --from-page 1201',
    ],
    [
      'of one of which they did at the last page',
      {
        ...failedBy('SERVER_ERROR'),
        walk_page: 1200,
        walk_stops: 2,
        walk_total: 59_970,
        walk_rows_seen: 59_950,
        walk_pages: 1199,
      },
      `page 1,200 failed in each of the last 3 runs, and the pages before it did not: once the API mends it: ${SYNC}`,
    ],
    [
      'of one of which two runs did',
      { ...failedBy('SERVER_ERROR'), walk_page: 1200, walk_stops: 1 },
      `when the API answers again: ${SYNC}`,
    ],
    ['of one whose last run was killed', { last_run_status: 'running', running: false }, SYNC],
    ['of an interrupted backfill', STOPPED_BACKFILL, BACKFILL],
    ['of an interrupted backfill of a list never read whole', { ...STOPPED_BACKFILL, as_of: null }, SYNC],
    [
      'of a list that the server refuses to answer now',
      { ...failedBy('RATE_LIMITED'), waiting_until: at(-1) },
      `wait until ${at(-1)}, or forget the wait: admin-mirror resume --org acme`,
    ],
    ['of a list that is no longer configured', { as_of: null, configured: 0 }, null],
  ])('%s', (_, changed, step) => {
    const list = listOf('acme', changed, { tokenPlace: '/run/secrets/acme' })

    const { jobs, next } = statusOf([list], { daemons: [] })

    expect(next.map(stepText)).toEqual(step === null ? [] : [step])
    expect(jobs[0]?.next).toEqual(next[0] ?? null)
  })

  it('of a list that the API does not answer is to wait, where a daemon tries again', () => {
    expect(statusOf([listOf('acme', failedBy())]).next).toEqual([
      { say: 'wait: it is tried again by itself', command: null },
    ])
  })

  it('of one whose name can only be shown with escapes has its id', () => {
    const row = { ...never('acme'), organization: 'ac\u202eme' }

    expect(stepsOf(listOf('acme', { ...NEVER, organization: row.organization }))).toEqual([
      `admin-mirror sync --org ${row.organization_id}`,
    ])
  })
})

describe('the steps of several lists', () => {
  it('are one command where one does', () => {
    const organizations = Array.from({ length: 40 }, (_, number) => `org${number}`)
    const both = organizations.flatMap((name) => [
      listOf(name, NEVER),
      listOf(name, { ...NEVER, collection: 'establishments' }),
    ])

    expect(stepsOf(...both)).toEqual(['admin-mirror sync'])
    expect(stepsOf(listOf('acme', NEVER), listOf('globex'), listOf('initech', NEVER))).toEqual([
      'admin-mirror sync --org acme --org initech',
    ])
    expect(statusOf(organizations.map((name) => listOf(name, failedBy()))).next).toHaveLength(1)
  })

  it('lift the brake for no list that does not need it', () => {
    const held: Partial<StatusRow> = { removals_held: 3, held_why: 'brake' }

    expect(
      stepsOf(
        listOf('acme', held),
        listOf('acme', { ...held, collection: 'establishments' }),
        listOf('globex', held),
        listOf('globex', { collection: 'establishments' }),
      ),
    ).toEqual([
      'look whether these rows really left the list (verify compares it with the API), then: admin-mirror sync --org acme --collection orders --collection establishments --accept-removals',
      'look whether these rows really left the list (verify compares it with the API), then: admin-mirror sync --org globex --collection orders --accept-removals',
    ])
  })

  it('are told the gravest first', () => {
    const lists = [listOf('acme', failedBy()), listOf('globex', { held_since: at(9) })]

    expect(stepsOf(...lists).map((step) => step.split(':')[0])).toEqual([
      'give globex a new token, or if the old one is valid again',
      'when the API answers again',
    ])
  })

  it('name first what is not about a list', () => {
    const two = [1, 2].map((pid) => ({ pid, since: at(9), running: true, outdated: false }))

    expect(statusOf([listOf('acme')], { daemons: two }).next.map(stepText)).toEqual([
      'stop all daemons but one, since each of them reads every list: 1, 2',
    ])
    expect(
      statusOf([listOf('acme')], { daemons: [{ pid: 1, since: at(9), running: false, outdated: true }] })
        .next,
    ).toEqual([
      { say: 'start the daemon again, by its service if it has one', command: 'admin-mirror start' },
    ])
    expect(statusOf([listOf('acme')], { daemons: two, isShared: true }).next).toEqual([])
  })
})

describe('beside a start with an older configuration', () => {
  const daemons = [{ pid: 7, since: at(9), running: true, outdated: true }]
  const restart = /^restart start \(process 7\)/

  it('a token is held, and a list never read, since that has not read the file: no time is promised', () => {
    const lists = [listOf('acme', { held_since: at(9) }), listOf('beta', NEVER)]

    const { next, jobs } = statusOf(lists, { daemons })

    expect(next.map(stepText)).toEqual([expect.stringMatching(restart), 'admin-mirror sync --org beta'])
    expect(jobs.map((job) => [job.next?.say ?? job.next?.command, job.next_run_at])).toEqual([
      [expect.stringMatching(restart), null],
      ['admin-mirror sync --org beta', null],
    ])
  })
})

describe('the command that continues a backfill', () => {
  it.each<[Partial<StatusRow>, string]>([
    [{}, '--filter state=paid'],
    [{ walk_filters: '{"tag[]":["a","b c"]}' }, "--filter 'tag[]=a' --filter 'tag[]=b c'"],
    [{ walk_filters: '{"q":"it\'s $HOME"}' }, `--filter 'q=it'\\''s $HOME'`],
    [{ walk_filters: '{"q":"\\u001b[2J"}' }, `--filter 'q=\\u{1b}[2J'`],
    [{ walk_kind: 'full' }, ''],
    [{ walk_first_page: 7 }, '--filter state=paid --from-page 7'],
  ])('types %j', (changed, options) => {
    const command = backfillOf({ ...never('acme'), ...STOPPED_BACKFILL, ...changed })

    expect(command).toBe(`backfill --org acme --collection orders ${options}`.trimEnd())
  })
})

it('a wait of more than a day was written by a wrong clock', () => {
  const until = new Date(NOW + 86_400_001).toISOString()

  expect(
    statusOf([listOf('acme', { running: true, waiting_until: until })]).jobs[0]?.waiting_until,
  ).toBeNull()
})
