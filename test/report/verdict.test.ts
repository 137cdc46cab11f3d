import { describe, expect, it } from 'vitest'
import { createCounters, metricsText } from '../../src/listener/metrics.ts'
import { pageHtml } from '../../src/listener/page.ts'
import { alarmText, statusText } from '../../src/report/status-text.ts'
import type { JobStatus, StatusFacts } from '../../src/report/status.ts'
import { isOverdue, lastAttempt } from '../../src/report/verdict.ts'
import type { StatusRow } from '../../src/store/core/status.ts'
import { fullDisk } from '../../src/store/sqlite/errors.ts'
import {
  at,
  daemon,
  failedBy,
  HELD,
  listOf,
  NEVER,
  NOW,
  RUNNING,
  statusOf,
  TOKEN,
} from '../helpers/status.ts'

const plan = (dueAt: number | null) => ({ schedule: '* * * * *', nextRunAt: null, dueAt })
const DUE = { plan: plan(NOW - 600_000) }
const READING: Partial<StatusRow> = { running: true, last_run_status: 'running' }

describe('the verdict', () => {
  it.each<[Partial<StatusFacts>, Partial<StatusRow>, code: number, string]>([
    [{}, {}, 0, 'are well'],
    [{ daemons: [daemon(1), daemon(2, false)] }, {}, 0, 'are well; 1 of 2 daemons died'],
    [{ daemons: [] }, {}, 0, 'are well; no daemon runs'],
    [{ daemons: [daemon(1, false)] }, {}, 0, 'are well; 1 of 1 daemons died'],
    [{ unpublished: 'EROFS' }, {}, 0, 'are well; the published file is older than the mirror'],
    [
      { daemons: [daemon(1, true, true)] },
      {},
      0,
      'are well; the running start has an older configuration than the file: restart it',
    ],
    [{ maxAge: { typed: '1m', ms: 60_000 } }, {}, 0, 'are older than --max-age or --fresh allows'],
    [
      { maxAge: { typed: '1m', ms: 60_000 } },
      { running: true, retry_since: at(2), retry_error: 'NETWORK: gone' },
      0,
      `are older than --max-age or --fresh allows; 1 of 1 lists get no answer since ${at(2)} (2 minutes): the server could not be reached; they are tried again`,
    ],
    [{}, { held_since: at(1) }, 3, 'need attention (1 held for a refused token)'],
    [{}, failedBy(), 1, 'need attention (1 failed: the server could not be reached)'],
    [{}, failedBy('DATABASE'), 4, 'need attention (1 could not use the mirror)'],
    [{}, { removals_held: 2 }, 5, 'need attention (1 with removals held back)'],
    [{}, NEVER, 1, 'need attention (1 never read)'],
    [{}, { as_of: null, last_sync_finished_at: null }, 1, 'need attention (1 overdue)'],
    [{}, { ...READING, as_of: null }, 0, 'are being read for the first time'],
    [{}, { as_of: null }, 0, 'are not read to their ends yet'],
    [{}, { last_run_status: 'interrupted' }, 0, 'are not read to their ends yet'],
    [{}, { last_run_status: 'running' }, 0, 'are not read to their ends yet'],
    [{}, { walk_origin: 'sync' }, 0, 'are not read to their ends yet'],
    [{}, { untrusted: 'it met a reject' }, 0, 'were read, but something may be missing'],
    [{}, { untrusted: 'it met a reject', running: true }, 0, 'are well'],
  ])('of %j and a list with %j', (facts, changed, code, expected) => {
    const { verdict, check_exit_code } = statusOf([listOf('acme', changed)], facts)

    expect([verdict, check_exit_code]).toEqual([`1 of 1 lists ${expected}`, code])
  })

  it.each<[string, Partial<StatusRow>[], string]>([
    ['not there', [], 'there are no configured lists'],
    ['well, one that left the configuration apart', [{}, {}, { configured: 0 }], '2 of 2 lists are well'],
    [
      'failing for one cause',
      [failedBy('TIMEOUT'), failedBy('TIMEOUT'), {}],
      '2 of 3 lists need attention (2 failed: no whole answer came within api.timeout)',
    ],
    [
      'failing for several, the gravest reason first',
      [failedBy(), failedBy('TIMEOUT'), { held_since: at(1) }],
      '3 of 3 lists need attention (1 held for a refused token, 2 failed)',
    ],
    [
      'without an answer for some time',
      [3, 2].map((minutes) => ({ running: true, retry_since: at(minutes), retry_error: 'NETWORK: gone' })),
      `2 of 2 lists get no answer since ${at(3)} (3 minutes): the server could not be reached; they are tried again`,
    ],
    [
      'without an answer, beside one that failed',
      [failedBy('FORBIDDEN'), { running: true, retry_since: at(2), retry_error: 'NETWORK: gone' }],
      `1 of 2 lists need attention (1 failed: the token has no access to this organization); 1 of 2 lists get no answer since ${at(2)} (2 minutes): the server could not be reached; they are tried again`,
    ],
    [
      'unfinished, one of them',
      [{ last_run_status: 'interrupted' }, {}],
      '1 of 2 lists are not read to their ends yet',
    ],
  ])('counts lists that are %s', (_, rows, expected) => {
    expect(statusOf(rows.map((row, index) => listOf(`org-${index}`, row))).verdict).toBe(expected)
  })

  it('goes before all lists where the mirror cannot be written, and nothing comes of the work that it tells of', () => {
    const unusable = fullDisk('/data/mirror.db', 999_999)
    const busy = { held_since: at(1), ...RUNNING, waiting_until: at(-5), retry_since: at(1) }
    const full = statusOf([listOf('acme', busy)], { unusable, daemons: [] })

    expect([full.check_exit_code, full.verdict, full.daemon.running]).toEqual([4, unusable, null])
    expect(full.next).toEqual([
      { say: expect.stringMatching(/^mend what the first line says/), command: null },
    ])
    expect(full.jobs[0]).toMatchObject({ running: false, waiting_until: null, next_run_at: null })
    expect([null, 1_000_000].map((free) => fullDisk('/data/mirror.db', free))).toEqual([null, null])
  })

  it('says where the configuration cannot be read any more', () => {
    expect(statusOf([listOf('acme')], { isConfigLost: true })).toMatchObject({
      check_exit_code: 2,
      verdict: expect.stringMatching(/^the configuration file is gone or wrong.*older configuration/),
    })
  })
})

/** Every combination of one choice of each. */
function product<T>(choices: readonly (readonly T[])[]): T[][] {
  return choices.reduce<T[][]>(
    (all, some) => all.flatMap((one) => some.map((other) => [...one, other])),
    [[]],
  )
}

/** What the mirror may hold of a list. */
const ROWS = product<Partial<StatusRow>>([
  [{}, NEVER],
  [{}, failedBy(), failedBy('DATABASE', 'the disk is full')],
  [{}, TOKEN],
  [{}, HELD],
  [
    {},
    { running: true },
    READING,
    { running: true, retry_since: at(1), retry_error: 'NETWORK: away' },
    { last_run_status: 'running' },
    { last_run_status: 'interrupted' },
  ],
  [{}, { configured: 0 }],
  [{}, { untrusted: 'it met a reject' }, { walk_origin: 'sync', walk_page: 3 }],
]).map((parts) => Object.assign({}, ...parts) as Partial<StatusRow>)

it('all that is said of one list agrees with what "status --check" exits with, whatever the mirror holds', async () => {
  const codes = new Set<number>()
  for (const row of ROWS)
    for (const dueAt of [null, NOW - 600_000]) {
      const status = statusOf([listOf('acme', row, { plan: plan(dueAt) })])
      const [job] = status.jobs as [JobStatus]
      const text = statusText(status, 'admin-mirror query')
      const alarm = alarmText(status)
      const page = await pageHtml(status)
      const metrics = await metricsText(status, { stalled: null, unusable: null }, createCounters())
      const why = `${JSON.stringify(job)}\n${text}`
      const code = status.check_exit_code
      const isWell = code === 0
      codes.add(code)

      const wrong = [
        row.failing_code === 'DATABASE',
        row.held_since !== undefined,
        row.removals_held !== undefined,
        row.failing_since !== undefined || job.overdue === true,
      ]
      const expected = row.configured === 0 ? 0 : ([4, 3, 5, 1].find((_, index) => wrong[index]) ?? 0)
      expect(code, why).toBe(expected)
      expect(metrics, why).toContain(`\nadmin_mirror_check_exit_code ${code}\n`)
      expect(/last_run_failed\{[^}]*\} 1\n/.test(metrics), why).toBe(job.failing_since !== null)
      expect(page.includes('<h1 class="bad">'), why).toBe(!isWell)
      expect(page.includes('<td class="bad">'), why).toBe(!isWell)
      expect(status.verdict.includes('need attention'), why).toBe(!isWell)
      if (isWell) continue
      for (const said of [status.verdict, text, alarm])
        expect(said, why).not.toMatch(/\bwell\b|nothing to do/)
      expect(alarm, why).toMatch(/\nacme orders: .*\nnext: \S/)
    }
  expect(codes).toEqual(new Set([0, 1, 3, 4, 5]))
})

const MINUTE = 60_000
const HOUR = 60 * MINUTE

describe('a list', () => {
  const ALIVE = { running: true, last_run_at: at(0), walk_updated_at: at(0) }
  const AHEAD = { as_of: at(-60), last_sync_finished_at: at(-60) }

  it.each<[string, Partial<StatusRow>, dueIn: number | null, after: number, boolean]>([
    ['is overdue half a minute after its time', {}, 0, 30_000, true],
    ['is given half a minute to begin', {}, 0, 29_999, false],
    ['that was never tried is at once', { as_of: null, last_sync_finished_at: null }, null, 0, true],
    ['that a clock read that was ahead is at once', AHEAD, null, 0, true],
    [
      'is not while it is read, however long it takes',
      { ...ALIVE, walk_updated_at: at(-540) },
      0,
      10 * HOUR,
      false,
    ],
    ['is not within an hour after its run wrote', ALIVE, 0, HOUR, false],
    ['is if its run has written nothing for more than an hour', ALIVE, 0, HOUR + 1, true],
    ['is not while that run waits as it was told', { ...ALIVE, waiting_until: at(-180) }, 0, 2 * HOUR, false],
    [
      'is if several runs have written nothing for more than an hour, each killed before the next',
      { ...ALIVE, last_run_at: at(-60), tried_since: at(0) },
      0,
      HOUR + 1,
      true,
    ],
    ['that is no longer configured never is', { configured: 0 }, 0, HOUR, false],
  ])('%s', (_, changed, dueIn, after, expected) => {
    const { row } = listOf('acme', changed, DUE)

    expect(isOverdue(row, dueIn === null ? null : NOW + dueIn, NOW + after)).toBe(expected)
  })

  it.each<[string | null, string | null, number | null]>([
    [at(60), at(50), NOW - 50 * MINUTE],
    [at(50), at(60), NOW - 50 * MINUTE],
    [at(50), at(-60), NOW - 50 * MINUTE],
  ])(
    'as of %s, last run until %s: its next time counts from the later that is not in the future',
    (asOf, end, expected) => {
      expect(lastAttempt({ as_of: asOf, last_sync_finished_at: end }, NOW)).toBe(expected)
    },
  )
})
