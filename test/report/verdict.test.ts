import { describe, expect, it } from 'vitest'
import { createCounters, metricsText } from '../../src/listener/metrics.ts'
import { pageHtml } from '../../src/listener/page.ts'
import type { JobStatus } from '../../src/report/status.ts'
import { alarmText, pingText, statusText } from '../../src/report/status-text.ts'
import { isOverdue, lastAttempt } from '../../src/report/times.ts'
import type { StatusRow } from '../../src/store/core/status.ts'
import { fullDisk } from '../../src/store/sqlite/read/status.ts'
import { at, failedBy, listOf, NOW, never, statusOf } from '../helpers/status.ts'

const NEVER = { as_of: null, last_run_at: null, last_sync_finished_at: null }
const plan = (dueAt: number | null) => ({ schedule: '* * * * *', nextRunAt: null, dueAt })
const DUE = { plan: plan(NOW - 600_000) }

/** Of lists that failed with these codes, and one that is well. */
const verdictOf = (...codes: string[]) =>
  statusOf([...codes.map((code) => listOf(`of${code}`, failedBy(code))), listOf('acme')]).verdict

describe('the verdict', () => {
  it.each<[daemons: (boolean | null)[], verdict: string]>([
    [[true], 'the only list is well'],
    [[true, false], 'the only list is well; 1 of 2 daemons died'],
    [[], 'the only list is up to date; no daemon runs: start one, or run sync for newer rows'],
    [[false], 'the only list is up to date; the daemon died: start it again, or run sync for newer rows'],
    [[false, null], 'the only list is up to date; this user cannot see whether a daemon is running'],
  ])('of daemons that run, died, or cannot be seen: %j', (running, expected) => {
    const daemons = running.map((one, index) => ({
      pid: index + 1,
      since: at(90),
      running: one,
      outdated: false,
    }))

    expect(statusOf([listOf('acme')], { daemons }).verdict).toBe(expected)
  })

  it('and what to do tell of a daemon that runs with an older configuration; exit codes do not', () => {
    const { verdict, next, check_exit_code } = statusOf([listOf('acme')], {
      daemons: [{ pid: 7, since: at(90), running: true, outdated: true }],
    })

    expect(verdict).toBe(
      'the only list is well; the running start has an older configuration than the file: restart it',
    )
    expect([next[0]?.say, check_exit_code]).toEqual([
      expect.stringMatching(/^restart start \(process 7\)/),
      0,
    ])
  })

  it('asks for no daemon beside a command that is at work', () => {
    const running = listOf('acme', { running: true, last_run_status: 'running' })

    expect(statusOf([running], { daemons: [] }).verdict).toBe('the only list is up to date')
  })

  it.each<[Partial<StatusRow>, isDue: boolean, string]>([
    [{ held_since: at(1) }, true, 'held for a refused token'],
    [failedBy(), false, 'failed: the server could not be reached'],
    [failedBy('DATABASE'), false, 'could not use the mirror'],
    [failedBy('A_LATER_CODE'), false, 'failed'],
    [{ removals_held: 2 }, false, 'with removals held back'],
    [NEVER, false, 'never read'],
  ])('names each reason: %j', (changed, isDue, reasons) => {
    const { verdict } = statusOf([listOf('acme', changed, isDue ? DUE : {})])

    expect(verdict).toBe(`the only list needs attention (${reasons})`)
  })

  it('counts the lists, and says a cause that they share', () => {
    expect(verdictOf('TIMEOUT', 'TIMEOUT')).toBe(
      '2 of 3 lists need attention (2 failed: no whole answer came within api.timeout)',
    )
    expect(verdictOf('TIMEOUT', 'NETWORK')).toBe('2 of 3 lists need attention (2 failed)')
  })

  it('says how many lists get no answer while they are tried again, since when and why, without an alarm', () => {
    const without = { running: true, retry_since: at(3), retry_error: 'NETWORK: acme orders page 3: gone' }
    const lists = [
      listOf('acme', without),
      listOf('globex', { ...without, retry_since: at(2) }),
      listOf('initech'),
    ]

    const { verdict, check_exit_code: code } = statusOf(lists)

    expect(verdict).toBe(
      `2 of 3 lists get no answer since ${at(3)} (3 minutes): the server could not be reached; they are tried again`,
    )
    expect(code).toBe(0)
  })

  it.each<[string, Partial<StatusRow>, string]>([
    [
      'is read for the first time',
      { as_of: null, running: true },
      'the only list is being read for the first time',
    ],
    ['was stopped', { last_run_status: 'interrupted' }, 'the only list is not read to its end yet'],
    [
      'may be read',
      { running: null, last_run_status: 'running' },
      'the only list is being read, or was interrupted',
    ],
    [
      'is not trusted',
      { untrusted: 'it met a reject' },
      'the only list was read, but something may be missing',
    ],
  ])('says without an alarm that a list %s', (_, changed, expected) => {
    const { verdict, check_exit_code: code } = statusOf([listOf('acme', changed)])

    expect([verdict, code]).toEqual([expected, 0])
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
  [{}, { held_since: at(9), held_reason: 'HTTP 401' }],
  [{}, { removals_held: 3, held_why: 'brake' }],
  [
    {},
    { running: true },
    { running: true, last_run_status: 'running' },
    { running: true, retry_since: at(1), retry_error: 'NETWORK: away' },
    { last_run_status: 'running' },
    { last_run_status: 'interrupted' },
  ],
  [{}, { configured: 0 }],
  [{}, { untrusted: 'it met a reject' }, { walk_origin: 'sync', walk_page: 3 }],
]).map((parts) => Object.assign({}, ...parts) as Partial<StatusRow>)

describe('all that is said of one list', () => {
  it('agrees with what "status --check" exits with, whatever the mirror holds', async () => {
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
        expect(status.verdict.includes('needs attention'), why).toBe(!isWell)
        if (isWell) continue
        for (const said of [status.verdict, text, alarm, pingText(status)])
          expect(said, why).not.toMatch(/\bwell\b|up to date|nothing to do/)
        expect(alarm, why).toMatch(/\nacme orders: .*\nnext: \S/)
      }
    expect(codes).toEqual(new Set([0, 1, 3, 4, 5]))
  })

  it('agrees that a mirror cannot be written', async () => {
    const unusable = fullDisk('/data/mirror.db', 4096)
    const status = statusOf([listOf('acme')], { unusable })

    expect(unusable).toBe(
      'the disk of /data/mirror.db is full (4,096 bytes are left, and 1,000,000 are needed), so nothing can be written: make room',
    )
    expect([status.check_exit_code, status.verdict]).toEqual([4, unusable])
    expect(status.next).toEqual([
      {
        say: 'make the mirror writable again: then everything goes on by itself, and what it holds can be queried meanwhile',
        command: null,
      },
    ])
    expect(await pageHtml(status)).toContain('<h1 class="bad">')
  })

  it('agrees that nothing could be published, which is no alarm', async () => {
    const status = statusOf([listOf('acme')], { unpublished: 'copy.db: EROFS' })

    expect([status.check_exit_code, status.verdict]).toEqual([
      0,
      'the only list is well; the published file is older than the mirror',
    ])
    const text = statusText(status, '')
    expect(text).toMatch(/^published file: older than the mirror: copy\.db: EROFS$/m)
    expect(text).toMatch(/^next: mend why nothing is published.*admin-mirror check$/m)
    expect(await pageHtml(status)).toContain('copy.db: EROFS')
  })

  it('agrees that the configuration cannot be read any more', () => {
    const status = statusOf([listOf('acme')], { isConfigLost: true })

    expect([status.check_exit_code, status.verdict]).toEqual([
      2,
      expect.stringMatching(/^the configuration file is gone or wrong.*older configuration/),
    ])
    expect(status.next).toEqual([expect.objectContaining({ command: 'admin-mirror check' })])
  })

  it('does not say that no daemon runs while none can write down that it does', () => {
    const status = statusOf([listOf('acme')], { unusable: 'the disk is full', daemons: [] })

    expect([status.daemon.running, statusText(status, '')]).toEqual([
      null,
      expect.stringMatching(/^daemon: none is seen, but one that runs could not write that down$/m),
    ])
    expect(statusText(status, '')).not.toMatch(/no daemon runs|none runs|start it/)
  })

  it('says of no list that it is being read or waits while the mirror cannot be written', () => {
    const reading: Partial<StatusRow> = { running: true, last_run_status: 'running', work: 'schedule' }
    const walk: Partial<StatusRow> = { walk_origin: 'sync', walk_page: 8, walk_rows_seen: 14, walk_total: 20 }
    const wait = { waiting_until: at(-5), waiting_for: 'the rate limit', retry_since: at(1) }

    const text = statusText(
      statusOf([listOf('acme', { ...reading, ...walk, ...wait })], { unusable: 'the disk is full' }),
      '',
    )

    expect(text).toContain('stopped: page 8, 14 of 20 items seen (70 %)')
    expect(text).not.toMatch(/being read|running since|waits|no answer|interrupted|next walk in/)
  })

  it.each([null, 1_000_000])('does not call a disk full with %j bytes free', (free) => {
    expect(fullDisk('/data/mirror.db', free)).toBeNull()
  })
})

const MINUTE = 60_000
const HOUR = 60 * MINUTE

function rowOf(changed: Partial<StatusRow>): StatusRow {
  return { ...never('acme'), last_sync_finished_at: at(0), ...changed }
}

describe('the last attempt', () => {
  const LATER = NOW + 2 * HOUR

  it.each<[string, Partial<StatusRow>, number | null]>([
    ['of a list that was never tried is none', { last_sync_finished_at: null }, null],
    ['is the end of a run: a time within it is skipped', {}, NOW],
    ['is a full backfill, where that is later', { as_of: at(-60) }, NOW + HOUR],
    ['in the future was written by a clock that was wrong', { last_sync_finished_at: at(-600) }, null],
  ])('%s', (_, changed, expected) => {
    expect(lastAttempt(rowOf(changed), LATER)).toBe(expected)
  })
})

describe('a list', () => {
  const RUNNING = { running: true, last_run_at: at(0), walk_updated_at: at(0) }

  it.each<[string, Partial<StatusRow>, dueIn: number | null, after: number, boolean]>([
    ['is overdue once its time is past', {}, 0, MINUTE, true],
    ['is given half a minute to begin', {}, 0, 29_999, false],
    ['that was never tried is overdue at once', { last_sync_finished_at: null }, null, 0, true],
    [
      'is not while it is read, however long it takes',
      { ...RUNNING, walk_updated_at: at(-540) },
      0,
      10 * HOUR,
      false,
    ],
    ['is if its run has written nothing for more than an hour', RUNNING, 0, HOUR + 1, true],
    [
      'is not while that run waits as it was told',
      { ...RUNNING, waiting_until: at(-180) },
      0,
      2 * HOUR,
      false,
    ],
    [
      'is if several runs have written nothing for more than an hour, each killed before the next',
      { ...RUNNING, last_run_at: at(-60), tried_since: at(0) },
      0,
      HOUR + 1,
      true,
    ],
    ['is not if this user cannot see whether its run lives', { ...RUNNING, running: null }, 0, MINUTE, false],
    ['that is no longer configured never is', { configured: 0 }, 0, HOUR, false],
  ])('%s', (_, changed, dueIn, after, expected) => {
    expect(isOverdue(rowOf(changed), dueIn === null ? null : NOW + dueIn, NOW + after)).toBe(expected)
  })
})
