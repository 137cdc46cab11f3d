import { getEventListeners } from 'node:events'
import { describe, expect, it } from 'vitest'
import { runConcurrently } from '../../src/cli/run-jobs.ts'
import {
  InterruptedError,
  JobError,
  type KnownError,
  MirrorError,
  RetryableError,
  TokenRefusedError,
} from '../../src/errors.ts'
import { runJob } from '../../src/sync/job.ts'
import type { Store } from '../../src/sync/store.ts'
import type { PageSource } from '../../src/sync/types.ts'
import { timeAt } from '../helpers/clock.ts'
import { ACME, GLOBEX, jobOf } from '../helpers/jobs.ts'
import { hearing, jobOptions, mirroredIds, runOnce, runs, walkOver, walks } from '../helpers/run-once.ts'
import { scriptedList, upTo } from '../helpers/scripted-list.ts'
import { leaseOf, openTestMirror, SYNC } from '../helpers/test-mirror.ts'

describe('a run that succeeds', () => {
  it('leaves a line with its counts, and is fresh as of the start of its walk', async () => {
    const test = openTestMirror()
    const list = scriptedList({ ids: upTo(5), before: () => test.clock.advance(1000) })

    const result = await runOnce(test, list, { trigger: 'schedule' })

    expect(runs(test)).toMatchObject([
      {
        id: 1,
        walk_id: 1,
        organization_id: ACME.id,
        collection: 'orders',
        trigger: 'schedule',
        status: 'succeeded',
        started_at: timeAt(0),
        finished_at: timeAt(3000),
        first_page: 1,
        pages: 3,
        rows_seen: 8,
        rows_added: 5,
        rows_changed: 0,
        rows_removed: 0,
        requests: 3,
        retries: 0,
        rate_limit_hits: 0,
        rate_limit_wait_ms: 0,
        error_code: null,
        error_message: null,
      },
    ])
    expect(result).toMatchObject({
      trigger: 'schedule',
      error: null,
      coverage: 'steady',
      run: { pages: 3, rowsSeen: 8, rowsAdded: 5, rowsChanged: 0, rowsRemoved: 0, requests: 3 },
    })
    expect(test.rows('SELECT * FROM sync_status WHERE organization_id = ?', ACME.id)).toEqual([
      {
        organization_id: ACME.id,
        organization: 'acme',
        collection: 'orders',
        rows: 5,
        as_of: timeAt(0),
        last_complete_at: timeAt(3000),
        coverage: 'steady',
        fresh_as_of: timeAt(0),
        newest: null,
        last_run_at: timeAt(0),
        last_run_status: 'succeeded',
        error_code: null,
        failing_since: null,
        held_since: null,
        removals_held: 0,
      },
    ])
  })

  it('counts the requests that the source reports', async () => {
    const test = openTestMirror()
    const list = scriptedList({ ids: upTo(4) })
    const source: PageSource = {
      ...list.source,
      async fetchPage(page, observe, signal) {
        observe({ kind: 'request' })
        observe({ kind: 'throttled' })
        observe({ kind: 'waited', ms: 1000.4 })
        observe({ kind: 'retry', code: 'SERVER_ERROR', reason: 'the server failed (500)', delayMs: 500 })
        return list.source.fetchPage(page, observe, signal)
      },
    }

    const result = await runOnce(test, { source })

    const traffic = { requests: 6, retries: 3, rate_limit_hits: 3, rate_limit_wait_ms: 3001 }
    expect(runs(test)).toEqual([expect.objectContaining(traffic)])
    expect(result.run).toMatchObject({ requests: 6, retries: 3, rateLimitHits: 3 })
  })
})

describe('a run that fails', () => {
  it.each<[string, unknown, string]>([
    ['the server', new RetryableError('SERVER_ERROR', 'the server failed (500)'), 'SERVER_ERROR'],
    ['a mistake of ours', new TypeError('x is not a function'), 'INTERNAL'],
  ])('says why, and keeps what was written: %s', async (_what, error, code) => {
    const { test, result } = await walkOver({
      ids: upTo(10),
      before: (answer) => {
        if (answer === 2) throw error
      },
    })

    expect(result.error).toMatchObject({ code })
    expect(runs(test)).toEqual([
      expect.objectContaining({
        status: 'failed',
        finished_at: timeAt(0),
        pages: 1,
        rows_added: 3,
        requests: 2,
        error_code: code,
        error_message: result.error?.message,
      }),
    ])
    expect(mirroredIds(test)).toEqual([1, 2, 3])
    expect(walks(test)).toEqual([expect.objectContaining({ status: 'open', next_page: 2 })])
  })
})

describe('a run that is stopped', () => {
  it('is interrupted, keeps what is written, and can be resumed', async () => {
    const test = openTestMirror()
    const stop = new AbortController()
    const before = (answer: number) => {
      if (answer === 2) stop.abort('SIGINT')
      stop.signal.throwIfAborted()
    }

    const result = await runOnce(test, scriptedList({ ids: upTo(10), before }), { signal: stop.signal })

    expect(result.error).toBeInstanceOf(InterruptedError)
    expect(runs(test)).toEqual([
      expect.objectContaining({
        status: 'interrupted',
        error_code: 'INTERRUPTED',
        error_message: expect.stringContaining('the next run continues from there'),
        pages: 1,
      }),
    ])
    expect(mirroredIds(test)).toEqual([1, 2, 3])
  })

  it('is complete if its last page was written', async () => {
    const test = openTestMirror()
    const stop = new AbortController()
    const observe = hearing({ page: () => stop.abort('SIGTERM') })

    const result = await runOnce(test, scriptedList({ ids: upTo(2) }), { observe, signal: stop.signal })

    expect(result).toMatchObject({ error: null, coverage: 'steady' })
    expect(runs(test)).toEqual([expect.objectContaining({ status: 'succeeded' })])
  })

  it('before its start leaves no line', async () => {
    const { test, list, result } = await walkOver({ ids: upTo(2) }, { signal: AbortSignal.abort('SIGTERM') })

    expect(result).toMatchObject({ run: null, walk: null, error: { code: 'INTERRUPTED' } })
    expect([runs(test), walks(test), list.asked]).toEqual([[], [], []])
  })
})

describe('a mirror that cannot be written', () => {
  it('is reported even if no line can be written', async () => {
    const test = openTestMirror()
    test.connection.exec('DROP TABLE sync_runs')

    const result = await runOnce(test, scriptedList({ ids: upTo(2) }))

    expect(result).toMatchObject({ run: null, error: { code: 'DATABASE' } })
  })
})

/** A mirror, and the same one opened by another process, which has the job. */
async function takenElsewhere() {
  const test = openTestMirror()
  const other = openTestMirror({ file: test.file, clock: test.clock })
  const { lease = leaseOf(jobOf()) } = await other.store.acquire(jobOf())
  const told: string[] = []
  const observe = hearing({ busy: ({ owner }) => told.push(owner) })
  return {
    test,
    release: () => other.store.release(lease),
    told,
    observe,
    list: scriptedList({ ids: upTo(2) }),
  }
}

describe('a job that another process has', () => {
  it('is reported as busy, with its owner and what to type', async () => {
    const { test, told, observe, list } = await takenElsewhere()

    const result = await runOnce(test, list, { observe })

    expect(result).toMatchObject({ run: null, walk: null, error: { code: 'BUSY' } })
    expect(result.error?.message).toMatch(
      /^acme orders: process \d+ on \S+ is working on it; nothing is wrong, and --wait waits until that is done$/,
    )
    expect([runs(test), list.asked, told]).toEqual([[], [], []])
  })

  it('is waited for on request, and the observer is told for whom', async () => {
    const { test, release, told, observe, list } = await takenElsewhere()

    const result = await runOnce(test, list, { observe, sleep: release, waitForOwner: true })

    expect(result).toMatchObject({ error: null, coverage: 'steady' })
    expect(told).toEqual([expect.stringMatching(/\d+/)])
  })
})

describe('a run that is refused before its first request', () => {
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
  ])('leaves %s', async (_what, refusing, error, lines) => {
    const test = openTestMirror()
    const { source } = scriptedList({ ids: upTo(2) })

    const result = await runOnce(test, { source: { ...source, ...refusing } })

    expect(result.error).toBe(error)
    expect(runs(test)).toEqual(lines)
  })
})

describe('what earlier runs left behind', () => {
  const fails = new RetryableError('NETWORK', 'no route')

  it.each<[string, KnownError | null, number | null, boolean, string[]]>([
    ['is taken away by a run that succeeds', null, 86_400_000, true, []],
    ['stays when a run fails', fails, null, false, []],
    [
      'stays, with a warning, if the clock contradicts the API',
      null,
      -86_400_001,
      false,
      ["warn this machine's clock is 24 hours behind the API's, so nothing old is deleted"],
    ],
  ])('%s', async (_what, error, ahead, pruned, warnings) => {
    const test = openTestMirror()
    let isPruned = false
    const prune: Store['prune'] = async () => {
      isPruned = true
    }
    const said: string[] = []
    const observe = hearing({
      notices: ({ notices }) => said.push(...notices.map(({ level, message }) => `${level} ${message}`)),
    })
    const list = scriptedList({ ids: upTo(2), before: () => error && Promise.reject(error) })
    const source = { ...list.source, clockAhead: () => ahead }

    await runOnce(test, { source }, { store: { ...test.store, prune }, observe })

    expect(isPruned).toBe(pruned)
    expect(said).toEqual(warnings.map((text) => expect.stringContaining(text)))
  })
})

/** A list of ten, whose server fails before this answer. */
function failsAt(failing: number) {
  const before = (answer: number) => {
    if (answer === failing) throw new RetryableError('SERVER_ERROR', 'the server failed (500)')
  }
  return scriptedList({ ids: upTo(10), before })
}

it.each([
  ['full', 'abandoned'],
  ['partial', 'open'],
] as const)(
  "a %s backfill that has read the list to its end leaves a sync's open walk %s",
  async (kind, left) => {
    const test = openTestMirror()
    const plan = { ...SYNC, origin: 'backfill', kind, resumeWithin: null } as const
    await runOnce(test, failsAt(3))
    await runOnce(test, failsAt(3), { plan, trigger: 'backfill' })
    expect(walks(test).map(({ status }) => status)).toEqual(['open', 'open'])

    await runOnce(test, failsAt(0), { plan, trigger: 'backfill' })

    expect(walks(test).map(({ status }) => status)).toEqual([left, 'complete'])
  },
)

describe('concurrent jobs', () => {
  it('all stop when the mirror fails, and all say so', async () => {
    const test = openTestMirror()
    const breaking = scriptedList({
      ids: upTo(10),
      before: (answer) => {
        if (answer === 2) test.connection.exec('DROP TABLE sync_pages')
      },
    })
    const waiting: PageSource = {
      ...breaking.source,
      fetchPage: (_page, _observer, signal) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => reject(new Error('aborted')))
        }),
    }
    const all = [
      jobOptions(test, breaking.source, { job: jobOf({}, ACME) }),
      jobOptions(test, waiting, { job: jobOf({}, GLOBEX) }),
    ]
    const { signal } = new AbortController()

    const results = await runConcurrently(
      all.map((job) => (stop) => runJob({ ...job, signal: stop })),
      signal,
    )

    expect(results.map(({ error }) => error)).toEqual([expect.any(MirrorError), expect.any(MirrorError)])
    expect(runs(test).map(({ status, error_code }) => [status, error_code])).toEqual([
      ['failed', 'DATABASE'],
      ['failed', 'DATABASE'],
    ])
    expect(getEventListeners(signal, 'abort')).toEqual([])
  })
})
