import { describe, expect, it } from 'vitest'
import { createApp } from '../../src/listener/app.ts'
import { metricsText } from '../../src/listener/metrics.ts'
import { pageHtml, pageState } from '../../src/listener/page.ts'
import { type JobContext, type JobStatus, jobStatus } from '../../src/report/status.ts'
import { statusText } from '../../src/report/status-text.ts'
import { troubleCode, verdict } from '../../src/report/verdict.ts'
import { type ListTrouble, neverSynced, type StatusRow } from '../../src/store/core/status.ts'
import { fullDisk } from '../../src/store/sqlite/read/status.ts'
import { at, failedBy, job, NOW, overview, source } from '../listener/overviews.ts'

function verdictOf(running: (boolean | null)[], jobs = [job('acme')]): string {
  const processes = running.map((one, index) => ({ pid: index + 1, since: at(90), running: one }))
  const isAny = (wanted: boolean | null) => running.includes(wanted)
  const daemon = { running: isAny(true) ? true : isAny(null) ? null : false, processes }
  return verdict({ unusable: null, jobs, daemon, timezone: 'UTC', max_age: null, fresh: null })
}

describe('the verdict', () => {
  it.each<[daemons: (boolean | null)[], verdict: string]>([
    [[true], 'the only list is well'],
    [[true, false], 'the only list is well; 1 of 2 daemons died'],
    [[], 'the only list is up to date; no daemon runs: start one, or run sync for newer rows'],
    [[false], 'the only list is up to date; the daemon died: start it again, or run sync for newer rows'],
    [[false, null], 'the only list is up to date; this user cannot see whether a daemon is running'],
  ])('of daemons that run, died, or cannot be seen: %j', (running, expected) => {
    expect(verdictOf(running)).toBe(expected)
  })

  it('says that a daemon died beside what else is wrong', () => {
    expect(verdictOf([true, false], [job('acme', 'orders', { overdue: true, next: 'sync' })])).toBe(
      'the only list needs attention (overdue); 1 of 2 daemons died',
    )
  })

  it.each<[Partial<JobStatus>, string]>([
    [{ held_since: at(1), overdue: true }, 'held for a refused token'],
    [failedBy(), 'failed'],
    [{ ...failedBy(), overdue: true }, 'failed, overdue'],
  ])('names each reason, and none for the rest: %j', (more, reasons) => {
    expect(verdictOf([true], [job('acme', 'orders', { ...more, next: 'type it' })])).toBe(
      `the only list needs attention (${reasons})`,
    )
  })

  it('does not call a list overdue that was never read', () => {
    const fresh = { overdue: true, next: 'sync', as_of: null, last_run_at: null }
    expect(verdictOf([true], [job('acme', 'orders', fresh), job('acme', 'establishments', fresh)])).toBe(
      '2 of 2 lists need attention (2 never read)',
    )
    const stopped = job('globex', 'orders', { last_run_status: 'interrupted' })
    expect(verdictOf([true], [job('acme', 'orders', fresh), stopped])).toBe(
      '1 of 2 lists needs attention (1 never read)',
    )
  })
})

/** Every combination of one choice of each. */
function product<T>(choices: readonly (readonly T[])[]): T[][] {
  return choices.reduce<T[][]>(
    (all, some) => all.flatMap((one) => some.map((other) => [...one, other])),
    [[]],
  )
}

const READ: Partial<StatusRow> = {
  rows: 100,
  as_of: at(5),
  last_complete_at: at(4),
  last_run_at: at(5),
  last_run_status: 'succeeded',
  last_sync_finished_at: at(4),
}

/** What the mirror may hold of a list, and the time at which its schedule asked for it. */
const ROWS = product<Partial<StatusRow>>([
  [{}, READ],
  [{}, failedBy(), failedBy('DATABASE', 'the disk is full')],
  [{}, { held_since: at(9), held_reason: 'HTTP 401' }],
  [{}, { removals_held: 3, held_why: 'brake' }],
  [
    {},
    { running: true },
    { running: true, last_run_status: 'running' },
    { last_run_status: 'running' },
    { last_run_status: 'interrupted' },
  ],
  [{}, { configured: 0 }],
  [{}, { untrusted: 'it met a reject' }, { total_is_wrong: true }, { walk_origin: 'sync', walk_page: 3 }],
]).map((parts) => Object.assign({}, ...parts) as Partial<StatusRow>)

const LISTS = ROWS.flatMap((row) =>
  [null, NOW - 600_000].map((dueAt) => {
    const context: JobContext = {
      now: NOW,
      plan: { schedule: '* * * * *', nextRunAt: null, dueAt },
    }
    return jobStatus({ ...neverSynced({ id: 'a', name: 'acme' }, 'orders'), ...row }, context)
  }),
)

/** All that is said of this list, alone in its mirror. */
async function toldOf(list: (typeof LISTS)[number], unusable: string | null) {
  const known = overview([list], {}, unusable)
  const { status } = known
  const app = createApp({
    source: () => source(known, { health: () => ({ stalled: null, unusable }) }),
    isLoopback: () => false,
    onError: () => {},
    now: () => NOW,
    sleep: () => new Promise(() => {}),
  })
  const check = await app.request('/check')
  return {
    code: status.check_exit_code,
    verdict: status.verdict,
    text: statusText(status, 'admin-mirror query'),
    check: { status: check.status, text: await check.text() },
    page: await pageHtml(known),
    metrics: await metricsText(known, { stalled: null, unusable }),
    pings: status.jobs.filter((one) => one.configured && troubleCode(one) !== null),
  }
}

describe('the code of a list that is not well', () => {
  const WELL = { held_since: null, removals_held: 0, failing_since: null, failing_code: null }

  it.each<[string, Partial<ListTrouble>, string | null]>([
    ['none', {}, null],
    ['none for a failure that is over', { failing_code: 'TIMEOUT' }, null],
    ['that of its failure', { failing_since: at(1), failing_code: 'TIMEOUT' }, 'TIMEOUT'],
    ['INTERNAL for a failure of an earlier version', { failing_since: at(1) }, 'INTERNAL'],
    ['REMOVALS_HELD', { removals_held: 1, failing_since: at(1), failing_code: 'TIMEOUT' }, 'REMOVALS_HELD'],
    ['UNAUTHORIZED', { held_since: at(1), removals_held: 1 }, 'UNAUTHORIZED'],
  ])('is %s', (_code, trouble, code) => {
    expect(troubleCode({ ...WELL, ...trouble })).toBe(code)
  })
})

describe('all that is said of one list', () => {
  it('agrees with what "status --check" exits with, whatever the mirror holds', async () => {
    const codes = new Set<number>()
    for (const list of LISTS) {
      const told = await toldOf(list, null)
      const why = `${JSON.stringify(list)}\n${told.text}`
      const isWell = told.code === 0
      codes.add(told.code)

      const wrong = [
        list.failing_code === 'DATABASE',
        list.held_since !== null,
        list.removals_held > 0,
        list.failing_since !== null || list.overdue === true,
      ]
      const expected = list.configured ? ([4, 3, 5, 1].find((_, index) => wrong[index]) ?? 0) : 0
      expect(told.code, why).toBe(expected)
      expect(told.check.status, why).toBe(isWell ? 200 : 503)
      expect(told.metrics, why).toContain(`\nadmin_mirror_check_exit_code ${told.code}\n`)
      expect(
        told.metrics.includes('admin_mirror_last_run_failed{') &&
          /last_run_failed\{[^}]*\} 1\n/.test(told.metrics),
        why,
      ).toBe(list.failing_since !== null)
      expect(pageState(list, NOW).tone === 'bad', why).toBe(!isWell)
      expect(told.page.includes('<header class="verdict bad">'), why).toBe(!isWell)
      expect(told.verdict.includes('needs attention'), why).toBe(!isWell)
      // Of a list that is merely overdue no ping comes, by which a dead-man's switch knows.
      expect(told.pings.length, why).toBe(
        Number(
          list.configured &&
            wrong
              .slice(0, 3)
              .concat(list.failing_since !== null)
              .includes(true),
        ),
      )
      if (isWell) continue
      for (const text of [told.verdict, told.text, told.check.text])
        expect(text, why).not.toMatch(/\bwell\b|up to date|nothing to do/)
      expect(told.check.text, why).toMatch(/acme orders: .*; next: \S/)
      expect(told.page, why).not.toMatch(/<h1>[^<]*well/)
    }
    expect(codes).toEqual(new Set([0, 1, 3, 4, 5]))
  })

  it('agrees that a mirror cannot be written', async () => {
    const unusable = fullDisk('/data/mirror.db', 4096)
    const told = await toldOf(job('acme'), unusable)

    expect(unusable).toBe(
      'the disk of /data/mirror.db is full (4,096 bytes are free), so nothing can be written: make room',
    )
    expect([told.code, told.verdict]).toEqual([4, unusable])
    expect(told.check).toEqual({ status: 503, text: `${unusable}\n` })
    expect(told.text).toMatch(/\nnext: fix the problem above/)
    expect(told.page).toContain('<header class="verdict bad">')
  })

  it.each([null, 1_000_000])('does not call a disk full with %j bytes free', (free) => {
    expect(fullDisk('/data/mirror.db', free)).toBeNull()
  })
})
