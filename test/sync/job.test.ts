import { getEventListeners, once } from 'node:events'
import { describe, expect, it } from 'vitest'
import { createJobRunner } from '../../src/cli/run-jobs.ts'
import type { ConfiguredJob } from '../../src/cli/selection.ts'
import {
  JobError,
  type KnownError,
  MirrorError,
  RetryableError,
  TokenRefusedError,
} from '../../src/errors.ts'
import { runJob } from '../../src/sync/job.ts'
import type { Store } from '../../src/sync/store.ts'
import type { Job, PageSource } from '../../src/sync/types.ts'
import { timeAt } from '../helpers/clock.ts'
import { ACME, GLOBEX, jobOf } from '../helpers/jobs.ts'
import { hearing, jobOptions, mirroredIds, runOnce, runs, walkOver, walks } from '../helpers/run-once.ts'
import { type Script, scriptedList, upTo } from '../helpers/scripted-list.ts'
import { openTestMirror, SYNC } from '../helpers/test-mirror.ts'

describe('a run', () => {
  it('that succeeds leaves a line with what it read and sent, and is fresh as of the start of its walk', async () => {
    const test = openTestMirror()
    const five = scriptedList({ ids: upTo(5), before: () => test.clock.advance(1000) })
    const source: PageSource = {
      ...five.source,
      fetchPage(page, observe, signal) {
        observe({ kind: 'request' })
        observe({ kind: 'throttled' })
        observe({ kind: 'waited', ms: 1000.4 })
        observe({ kind: 'retry', code: 'SERVER_ERROR', reason: 'the server failed (500)', delayMs: 500 })
        return five.source.fetchPage(page, observe, signal)
      },
    }

    const result = await runOnce(test, { source }, { trigger: 'schedule' })

    const list = { organization_id: ACME.id, collection: 'orders' }
    const read = { first_page: 1, pages: 3, rows_seen: 8, rows_added: 5, rows_changed: 0, rows_removed: 0 }
    const sent = { requests: 6, retries: 3, rate_limit_hits: 3, rate_limit_wait_ms: 3001 }
    const took = { started_at: timeAt(0), finished_at: timeAt(3000) }
    const noError = { error_code: null, error_message: null }
    const run = { id: 1, walk_id: 1, trigger: 'schedule', status: 'succeeded' }
    expect(runs(test)).toMatchObject([{ ...run, ...list, ...took, ...read, ...sent, ...noError }])
    const walk = { kind: 'full', filters: '{}', status: 'complete', coverage: 'steady', next_page: null }
    expect(walks(test)).toMatchObject([{ ...walk, ...list, pages: 3, rows_seen: 5, total: 5, passes: 1 }])
    expect(result).toMatchObject({ trigger: 'schedule', error: null, coverage: 'steady', items: 5 })
    const complete = { rows: 5, as_of: timeAt(0), last_complete_at: timeAt(3000), coverage: 'steady' }
    const fresh = { fresh_as_of: timeAt(0), newest: null, last_run_at: timeAt(0) }
    expect(test.rows('SELECT * FROM sync_status WHERE organization_id = ?', ACME.id)).toMatchObject([
      { ...list, ...complete, ...fresh, last_run_status: 'succeeded' },
    ])
  })

  it('that fails says why, and keeps what was written', async () => {
    const error = new TypeError('x is not a function')
    const { test, result } = await walkOver({ ids: upTo(10), before: (answer) => failAt(answer, 2, error) })

    const told = { error_code: 'INTERNAL', error_message: result.error?.message }
    const written = { pages: 1, rows_added: 3, requests: 2 }
    expect(runs(test)).toMatchObject([{ status: 'failed', finished_at: timeAt(0), ...written, ...told }])
    expect(mirroredIds(test)).toEqual([1, 2, 3])
    expect(walks(test)).toMatchObject([{ status: 'open', next_page: 2 }])
  })

  const interrupted = {
    status: 'interrupted',
    error_code: 'INTERRUPTED',
    error_message: expect.stringContaining('the next run continues from there'),
  }

  // Two pages of three items each.
  it.each<[string, pages: number, lines: object[]]>([
    ['before its start leaves no line', 0, []],
    ['while a page is under way keeps what is written', 1, [interrupted]],
    ['once its last page is written is complete', 2, [{ status: 'succeeded', error_code: null }]],
  ])('that is stopped %s', async (_when, pages, lines) => {
    const stop = new AbortController()
    if (pages === 0) stop.abort('SIGTERM')
    const before = (answer: number) => {
      if (answer === 2 && pages === 1) stop.abort('SIGTERM')
      stop.signal.throwIfAborted()
    }
    const observe = hearing({ page: ({ page }) => page.number === pages && stop.abort('SIGTERM') })

    // Without a total, so that no page is asked for again.
    const script: Script = { ids: upTo(6), before, instead: (page) => ({ ...page, total: null }) }
    const { test, result } = await walkOver(script, { observe, signal: stop.signal })

    expect(runs(test)).toMatchObject(lines)
    expect(runs(test)).toHaveLength(lines.length)
    expect(mirroredIds(test)).toEqual(upTo(3 * pages))
    expect(result.error?.code ?? null).toBe(pages === 2 ? null : 'INTERRUPTED')
  })

  it('of a mirror that cannot be written is reported even if no line can be written', async () => {
    const test = openTestMirror()
    test.connection.exec('DROP TABLE sync_runs')

    const result = await runOnce(test, scriptedList({ ids: upTo(2) }))

    expect(result).toMatchObject({ run: null, error: { code: 'DATABASE' } })
  })

  const held = new TokenRefusedError('the token was refused (401)')
  const closed = new JobError('RATE_LIMITED', 'closed for an hour')
  const unreadable = new JobError('CONFIGURATION', 'no token file')

  it.each<[string, Partial<PageSource>, KnownError, unknown[]]>([
    ['no line if it may send none', { refusal: async () => closed }, closed, []],
    ['no line if its token is held', { fetchPage: () => Promise.reject(held) }, held, []],
    [
      'a line if waiting does not help',
      { fetchPage: () => Promise.reject(unreadable) },
      unreadable,
      [expect.objectContaining({ status: 'failed', error_code: 'CONFIGURATION' })],
    ],
  ])('that is refused before its first request leaves %s', async (_what, refusing, error, lines) => {
    const test = openTestMirror()
    const { source } = scriptedList({ ids: upTo(2) })

    const result = await runOnce(test, { source: { ...source, ...refusing } })

    expect(result.error).toBe(error)
    expect(runs(test)).toEqual(lines)
  })
})

describe('what earlier runs left behind', () => {
  const fails = new RetryableError('NETWORK', 'no route')

  it.each<[string, KnownError | null, number | null, what: string[]]>([
    ['is taken away by a run that succeeds', null, 86_400_000, ['pruned']],
    ['stays when a run fails without an answer', fails, null, []],
    ['is taken away by a run that is refused', fails, 1000, ['pruned']],
    ['stays when the mirror fails', new MirrorError('the disk is full'), 1000, []],
    [
      'stays, with a warning, if the clock contradicts the API',
      null,
      -86_400_001,
      ['24 hours behind the API'],
    ],
  ])('%s', async (_what, error, ahead, expected) => {
    const test = openTestMirror()
    const told: string[] = []
    const prune: Store['prune'] = async () => void told.push('pruned')
    const observe = hearing({ notices: ({ notices }) => told.push(...notices.map(({ message }) => message)) })
    const list = scriptedList({ ids: upTo(2), before: (answer) => error && failAt(answer, 1, error) })
    const source = { ...list.source, clockAhead: () => ahead }

    await runOnce(test, { source }, { store: { ...test.store, prune }, observe })

    expect(told).toEqual(expected.map((text) => expect.stringContaining(text)))
  })
})

/** The server fails before an answer. */
function failAt(answer: number, failing: number, error: unknown): void {
  if (answer === failing) throw error
}

it.each([
  ['full', 'abandoned'],
  ['partial', 'open'],
] as const)(
  "a %s backfill that has read the list to its end leaves a sync's open walk %s",
  async (kind, left) => {
    const test = openTestMirror()
    const plan = { ...SYNC, origin: 'backfill', kind, resumeWithin: null } as const
    const list = scriptedList({ ids: upTo(10), before: (answer) => failAt(answer % 3, 0, new Error('no')) })
    await runOnce(test, list)
    await runOnce(test, list, { plan, trigger: 'backfill' })
    expect(walks(test).map(({ status }) => status)).toEqual(['open', 'open'])

    await runOnce(test, scriptedList({ ids: upTo(10) }), { plan, trigger: 'backfill' })

    expect(walks(test).map(({ status }) => status)).toEqual([left, 'complete'])
  },
)

it.each([['page = 2'], ["why = 'look'"]])(
  'an open walk whose stored answers do not lead to each other is abandoned, and a new one begins: %s',
  async (other) => {
    const test = openTestMirror()
    const broken = scriptedList({ ids: upTo(10), before: (answer) => failAt(answer, 2, new Error('no')) })
    await runOnce(test, broken)
    test.connection.exec(`UPDATE sync_pages SET ${other}`)

    await runOnce(test, scriptedList({ ids: upTo(10) }))

    expect(walks(test).map(({ status }) => status)).toEqual(['abandoned', 'complete'])
  },
)

it('concurrent jobs all stop when the mirror fails, and all say so', async () => {
  const test = openTestMirror()
  const { source } = scriptedList({
    ids: upTo(10),
    before: (answer) => answer === 2 && test.connection.exec('DROP TABLE sync_pages'),
  })
  const waiting: PageSource = {
    ...source,
    async fetchPage(_page, _observe, signal) {
      await once(signal, 'abort')
      throw new Error('aborted')
    },
  }
  const options = jobOptions(test, source)
  const session = { ...test, source: async (job: Job) => (job.organization === GLOBEX ? waiting : source) }
  const { eachJob } = createJobRunner({
    config: options,
    session,
    observe: () => options.observe,
    runtime: options,
  } as unknown as Parameters<typeof createJobRunner>[0])
  const { signal } = new AbortController()
  const jobs = [jobOf(), jobOf({}, GLOBEX)] as ConfiguredJob[]

  const results = await eachJob(jobs, signal, (reading) => runJob({ ...options, ...reading }))

  expect(results.map(({ error }) => error)).toEqual([expect.any(MirrorError), expect.any(MirrorError)])
  expect(runs(test)).toMatchObject([1, 2].map(() => ({ status: 'failed', error_code: 'DATABASE' })))
  expect(getEventListeners(signal, 'abort')).toEqual([])
})
