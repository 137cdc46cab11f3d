import { describe, expect, it } from 'vitest'
import { backfillCommand, nextStep } from '../../src/report/next-step.ts'
import { createStatus, jobStatus } from '../../src/report/status.ts'
import { statusText } from '../../src/report/status-text.ts'
import { neverSynced, type OpenBackfill, type StatusRow } from '../../src/store/core/status.ts'
import { START, timeAt } from '../helpers/clock.ts'
import { ACME } from '../helpers/jobs.ts'
import { NOTHING_TOLD } from '../listener/overviews.ts'

const PARTIAL: OpenBackfill = {
  kind: 'partial',
  filters: { state: 'paid' },
  first_page: 1,
  page: 3,
  rows_seen: 4,
  total: 10,
  updated_at: timeAt(0),
  is_last_run: true,
}

/** A list that was read whole, or what is said instead. */
function rowOf(changed: Partial<StatusRow>): StatusRow {
  const read: Partial<StatusRow> = {
    as_of: timeAt(0),
    last_run_at: timeAt(0),
    last_run_status: 'succeeded',
    last_run_trigger: 'manual',
  }
  return { ...neverSynced(ACME, 'orders'), ...read, ...changed }
}

const FACTS = {
  ...NOTHING_TOLD,
  database: 'mirror.db',
  now: timeAt(0),
  timezone: 'UTC',
  queue: null,
  waiting_until: null,
  max_age: null,
  fresh: null,
}
const AT = { now: START }
const TYPED = 'admin-mirror query'
const DAEMON = { pid: 7, since: timeAt(0), running: true }

function textOf(row: StatusRow): string {
  const jobs = [jobStatus(row, AT)]
  return statusText(createStatus({ ...FACTS, jobs }, [DAEMON]), TYPED)
}

const SYNC = 'admin-mirror sync --org acme'
const BACKFILL = 'admin-mirror backfill --org acme --collection orders --filter state=paid'
const FAILED = { failing_since: timeAt(0), failing_code: 'NETWORK' }
const STOPPED_BACKFILL: Partial<StatusRow> = {
  last_run_trigger: 'backfill',
  last_run_status: 'interrupted',
  walk_origin: 'backfill',
  walk_page: 3,
  backfills: [PARTIAL],
}

describe('the next step', () => {
  it.each<[string, Partial<StatusRow>, string | null]>([
    ['of a list that was read whole', {}, null],
    [
      'of one of which rows are held back',
      { removals_held: 3, held_why: 'brake' },
      `check that these rows really left the list, then: ${SYNC} --collection orders --accept-removals`,
    ],
    [
      'of one whose total is wrong',
      { total_is_wrong: true },
      `the total of orders cannot be relied on, so no row is removed: set collections.orders.total: ignore in the configuration, then: ${SYNC} --collection orders`,
    ],
    ['of one that is being read', { as_of: null, last_run_status: 'running', running: true }, null],
    [
      'of one that failed and is tried again',
      { ...FAILED, running: true },
      'wait for the run in progress to end, and look again: admin-mirror status',
    ],
    ['of one whose last run was killed', { last_run_status: 'running' }, SYNC],
    ['of an interrupted backfill', STOPPED_BACKFILL, BACKFILL],
    ['of an interrupted backfill of a list never read whole', { ...STOPPED_BACKFILL, as_of: null }, SYNC],
    [
      'of a list that the server refuses to answer now',
      { last_run_status: 'failed', error_code: 'RATE_LIMITED', waiting_until: timeAt(60_000) },
      `wait until ${timeAt(60_000)}, or forget the wait: admin-mirror resume --org acme`,
    ],
    [
      'of one whose name can only be shown with escapes',
      { as_of: null, organization: 'ac\u202eme' },
      `admin-mirror sync --org ${ACME.id}`,
    ],
    ['of a list that is no longer configured', { as_of: null, configured: 0 }, null],
  ])('%s', (_, changed, step) => {
    expect(nextStep(rowOf(changed), START)).toBe(step)
  })
})

describe('the command that continues a backfill', () => {
  it.each<[Partial<OpenBackfill>, string]>([
    [{}, '--filter state=paid'],
    [{ filters: { 'tag[]': ['a', 'b c'] } }, "--filter 'tag[]=a' --filter 'tag[]=b c'"],
    [{ filters: { q: "it's $HOME" } }, `--filter 'q=it'\\''s $HOME'`],
    [{ filters: { q: '\u001b[2J' } }, `--filter 'q=\\u{1b}[2J'`],
    [{ kind: 'full', filters: { configured: 'yes' } }, ''],
  ])('types %j', (changed, options) => {
    const command = backfillCommand(
      { organization: 'acme', organization_id: ACME.id, collection: 'orders' },
      { ...PARTIAL, ...changed },
    )

    expect(command).toBe(`admin-mirror backfill --org acme --collection orders ${options}`.trimEnd())
  })
})

describe('the text', () => {
  it('gives the time of the last page if this user cannot see whether the run is alive', () => {
    const updated = timeAt(-60_000)

    const text = textOf(
      rowOf({
        last_run_status: 'running',
        running: null,
        walk_origin: 'sync',
        walk_page: 2,
        walk_updated_at: updated,
      }),
    )

    expect(text).toContain(`last page written ${updated}`)
    expect(text).toContain('the only list is being read, or was interrupted')
    expect(text).not.toMatch(/running since|stopped at/)
  })

  it.each<[Partial<StatusRow>, string, string]>([
    [{ rows_missed: 12 }, 'the last walk did not see 12 rows; what the next walk', 'the only list'],
    [{ untrusted: 'it ended' }, 'its last walk removed nothing: it ended', 'the only list was'],
  ])('says what its last reading leaves open: %o', (row, words, head) => {
    const text = textOf(rowOf(row))

    expect(text).toContain(`    ${words}`)
    expect(text).toContain(head)
  })

  it.each([
    ['brake', 'more than the brake allows in one walk'],
    ['empty', 'the list came without items'],
  ] as const)('says once how many rows are held back, and why: %s', (why, reason) => {
    const held = { error_code: 'REMOVALS_HELD', error_message: 'the same at length' }

    const text = textOf(rowOf({ ...held, rows: 1000, removals_held: 300, held_why: why }))

    expect(text).toContain(`    300 of these 1,000 rows left the list and are held back: ${reason}\n`)
    expect(text).not.toContain('the same at length')
  })

  it('names what to do for each list, each thing once, and of many the first', () => {
    const held = Array.from({ length: 7 }, (_, number) =>
      rowOf({ organization: `org-${number}`, removals_held: 1, held_why: 'brake' }),
    )
    const jobs = [...held, ...held].map((row) => jobStatus(row, AT))

    const text = statusText(createStatus({ ...FACTS, jobs }, [DAEMON]), TYPED)

    const steps = text.slice(text.indexOf('next: ')).trimEnd().split('\n')
    expect(steps.map((step) => /--org (\S+)/.exec(step)?.[1] ?? step.trim())).toEqual([
      'org-0',
      'org-1',
      'org-2',
      'org-3',
      'org-4',
      '... and 2 more',
    ])
  })

  it.each<[string, Partial<StatusRow>, next: string]>([
    ['without a run', {}, SYNC],
    ['that is being read', { last_run_status: 'running', running: true }, 'wait for the walks in progress'],
    ['that somebody stopped reading', { last_run_status: 'interrupted' }, SYNC],
  ])('says of a list %s that it is older than --max-age', (_, changed, next) => {
    const job = jobStatus(rowOf(changed), { ...AT, now: START + 60_001, maxAge: 60_000 })

    const text = statusText(createStatus({ ...FACTS, max_age: '1m', jobs: [job] }, [DAEMON]), TYPED)

    expect(job.too_old).toBe(true)
    expect(text).toContain('\nthe only list is older than 1m\n')
    expect(text).toMatch(/^ {4}too old: .*--max-age is 1m$/m)
    expect(text).toContain(`next: ${next}\n`)
  })

  it.each<[string, Partial<StatusRow>, maxAge: number | null, tooOld: boolean | null]>([
    ['one that is no longer configured', { configured: 0 }, 1, false],
    ['one without --max-age', { as_of: null }, null, null],
  ])('says nothing of the kind of %s', (_, changed, maxAge, tooOld) => {
    const job = jobStatus(rowOf(changed), { ...AT, now: START + 60_000, maxAge })

    expect(job.too_old).toBe(tooOld)
    expect(statusText(createStatus({ ...FACTS, jobs: [job] }, [DAEMON]), TYPED)).not.toContain('too old')
  })
})

it('a refused token is to be replaced where it is', () => {
  const next = nextStep(rowOf({ held_since: timeAt(0) }), START, { tokenPlace: '/run/secrets/acme' })

  expect(next).toBe(
    'give acme a new token (/run/secrets/acme), or if the old one is valid again: admin-mirror resume --org acme',
  )
})
