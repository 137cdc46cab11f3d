import { describe, expect, it } from 'vitest'
import { RetryableError } from '../../src/errors.ts'
import type { JobOptions } from '../../src/sync/job.ts'
import type { Store } from '../../src/sync/store.ts'
import { mirroredIds, runOnce, runs, walkOver, walks } from '../helpers/run-once.ts'
import { type ScriptedList, scriptedList, upTo } from '../helpers/scripted-list.ts'
import { openTestMirror, SYNC, type TestMirror } from '../helpers/test-mirror.ts'

const PAGES = [1, 2, 3, 4]
const HOUR = 3_600_000

const FULL: Partial<JobOptions> = {
  plan: { ...SYNC, origin: 'backfill', resumeWithin: null },
  trigger: 'backfill',
}

function fromPage(firstPage: number): Partial<JobOptions> {
  return {
    plan: { ...SYNC, origin: 'backfill', kind: 'partial', firstPage, resumeWithin: null },
    trigger: 'backfill',
  }
}

/** A list of ten, of which such a run wrote two pages before the server failed. */
async function interrupted(
  options: Partial<JobOptions>,
  test = openTestMirror(),
): Promise<{ test: TestMirror; list: ScriptedList }> {
  const failing = scriptedList({
    ids: upTo(10),
    before: (answer) => {
      if (answer === 3) throw new RetryableError('SERVER_ERROR', 'the server failed (500)')
    },
  })
  await runOnce(test, failing, options)
  return { test, list: scriptedList({ ids: upTo(10) }) }
}

function statuses(test: TestMirror): unknown[] {
  return walks(test).map(({ kind, status }) => [kind, status].join(' '))
}

describe('a backfill', () => {
  it('from a page on is partial: it reads from there and has no coverage', async () => {
    const { test, list, result } = await walkOver({ ids: upTo(10) }, fromPage(3))

    expect(result).toMatchObject({ error: null, coverage: null })
    expect(list.asked).toEqual([3, 4])
    expect(mirroredIds(test)).toEqual([7, 8, 9, 10])
    expect(walks(test)).toEqual([
      expect.objectContaining({ kind: 'partial', status: 'complete', coverage: null, next_page: null }),
    ])
    expect(runs(test)).toEqual([expect.objectContaining({ first_page: 3, pages: 2, rows_seen: 4 })])
    expect(test.value('SELECT as_of FROM sync_status WHERE last_run_at IS NOT NULL')).toBeNull()
  })

  it('starts at the first page, whatever a sync has read, and replaces its walk once, with that page', async () => {
    const { test, list } = await interrupted({})
    const abandoned: [walk: number, afterPages: number][] = []
    const closeWalk: Store['closeWalk'] = async (lease, end) => {
      if (!end.outcome)
        abandoned.push([end.walk.id, Number(test.value('SELECT count(*) FROM sync_pages WHERE walk_id = 2'))])
      return test.store.closeWalk(lease, end)
    }

    await runOnce(test, list, { ...FULL, store: { ...test.store, closeWalk } })

    expect(abandoned).toEqual([[1, 1]])
    expect(list.asked).toEqual([...PAGES, 1])
    expect(statuses(test)).toEqual(['full abandoned', 'full complete'])
  })

  it("leaves a sync's walk alone until it has a page of its own, even a full one", async () => {
    const { test, list } = await interrupted({})
    const refused = scriptedList({ ids: upTo(8), before: () => Promise.reject(new Error('refused')) })

    await runOnce(test, refused, FULL)
    await runOnce(test, list)

    expect(list.asked[0]).toBeGreaterThan(1)
    expect(statuses(test)).toEqual(['full complete', 'full open'])
  })
})

describe('an interrupted backfill', () => {
  it('continues when it is typed again, even after weeks', async () => {
    const { test, list } = await interrupted(fromPage(2))
    test.clock.advance(1000 * HOUR)

    const result = await runOnce(test, list, fromPage(2))

    expect(list.asked).toEqual([3, 4])
    expect(result.error).toBeNull()
    expect(walks(test)).toEqual([expect.objectContaining({ status: 'complete' })])
  })

  it('never asks for pages before its own first page, however short the list became', async () => {
    const { test } = await interrupted(fromPage(2))
    const list = scriptedList({ ids: upTo(2) })

    const result = await runOnce(test, list, fromPage(2))

    expect(list.asked).toEqual([3])
    expect(result.error).toBeNull()
    expect(statuses(test)).toEqual(['partial complete'])
  })
})
