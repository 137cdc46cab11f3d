import fs from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import type { JobOptions } from '../../src/sync/job.ts'
import {
  ACCEPT,
  BACKFILL,
  createScene,
  expectRows,
  held,
  history,
  type Scene,
  without,
} from '../helpers/removal-scene.ts'
import { upTo } from '../helpers/scripted-list.ts'
import { tempFolder } from '../helpers/temp-folder.ts'

// A process dies before each transaction that ends a walk; the next one must come to the same result.

const ALL = upTo(400)
const SOME_GONE = ALL.filter((id) => id % 10 !== 3)
const MOST_GONE = ALL.filter((id) => id % 2 !== 1)

type Walk = [ids: readonly number[], options?: Partial<JobOptions>]

/** Returns the file of a mirror after these walks. */
async function fileAfter(walks: readonly Walk[]): Promise<string> {
  const file = path.join(tempFolder(), 'mirror.db')
  const scene = createScene({ perPage: 100 }, { file })
  for (const [ids, options] of walks) await scene.walk(ids, options)
  scene.test.close()
  return file
}

function copyOf(file: string): string {
  const copy = path.join(tempFolder(), 'mirror.db')
  fs.copyFileSync(file, copy)
  return copy
}

/** Allows this many transactions from the last page on, its own included, and then fails. */
function killAfter({ test, list }: Scene, transactions: number): void {
  const { connection } = test
  const original = connection.transaction.bind(connection)
  const pages = connection.prepare('SELECT pages FROM sync_walks ORDER BY id DESC LIMIT 1').pluck()
  const before = Number(test.value('SELECT count(*) FROM sync_walks'))
  const isAtEnd = () =>
    Number(test.value('SELECT count(*) FROM sync_walks')) > before &&
    Number(pages.get()) >= Math.ceil(list.ids.length / 100)
  let left = transactions
  connection.transaction = ((task: () => unknown) =>
    original(() => {
      if (isAtEnd() && left-- <= 0) throw new Error('killed')
      return task()
    })) as typeof connection.transaction
}

/** All that judging a walk writes, except times. */
function outcome({ test }: Scene) {
  const { rows } = test
  return {
    live: rows('SELECT id FROM orders ORDER BY id'),
    raw: rows('SELECT id FROM orders_raw ORDER BY id'),
    history: history(test),
    missing: rows('SELECT key, state, missed_by, reason FROM sync_missing ORDER BY key'),
    jobs: rows('SELECT rows, removals_held, held_why, scope_path, scope_filters, scope_mixed FROM sync_jobs'),
    walks: rows('SELECT id, status, coverage FROM sync_walks ORDER BY id'),
    removed: test.value('SELECT sum(rows_removed) FROM sync_runs'),
  }
}

describe('a walk whose process dies while it is judged', () => {
  it.each<[string, Walk[], Walk, Record<string, unknown>]>([
    ['rows missed once', [[ALL]], [SOME_GONE], { live: 400, held: 0 }],
    ['removed rows', [[ALL], [SOME_GONE]], [SOME_GONE], { live: 360, held: 0 }],
    ['rows held back', [[ALL], [MOST_GONE]], [MOST_GONE], { live: 400, held: 200 }],
    ['rows held back before', [[ALL], [MOST_GONE], [MOST_GONE]], [MOST_GONE, ACCEPT], { live: 200, held: 0 }],
    ['rows that would be held back', [[ALL], [MOST_GONE]], [MOST_GONE, ACCEPT], { live: 200, held: 0 }],
  ])('before any transaction has the same result: %s', async (_what, before, [ids, options], expected) => {
    const file = await fileAfter(before)
    const unharmed = createScene({ perPage: 100 }, { file: copyOf(file) })
    await unharmed.walk(ids, options)
    const wanted = outcome(unharmed)
    let deaths = 0

    for (let transactions = 1; ; transactions++) {
      const copy = copyOf(file)
      const dying = createScene({ perPage: 100 }, { file: copy })
      killAfter(dying, transactions)
      await dying.walk(ids, options)
      dying.test.close()
      const next = createScene({ perPage: 100 }, { file: copy })
      if (next.test.value(`SELECT count(*) FROM sync_walks WHERE status = 'open'`) === 0) break
      deaths++
      await next.walk(ids, options)
      expect(outcome(next), `after ${transactions} transactions`).toEqual(wanted)
      expect(next.list.asked).toEqual([])
      next.test.close()
    }

    expect(deaths).toBeGreaterThan(1)
    expect({ live: wanted.live.length, held: held(unharmed.test) }).toEqual(expected)
  })

  it('holds back the rows that it had not removed yet, if they are no longer accepted', async () => {
    const file = await fileAfter([[ALL], [MOST_GONE]])
    for (let transactions = 1; transactions < 6; transactions++) {
      const copy = copyOf(file)
      const dying = createScene({ perPage: 100 }, { file: copy })
      killAfter(dying, transactions)
      await dying.walk(MOST_GONE, ACCEPT)
      dying.test.close()
      const next = createScene({ perPage: 100 }, { file: copy })

      const { run } = await next.walk(MOST_GONE)

      expect(run?.rowsRemoved ?? 0).toBe(0)
      const live = Number(next.test.value('SELECT count(*) FROM orders'))
      expect(held(next.test)).toBe(live - MOST_GONE.length)
    }
  })
})

describe('a walk judged late', () => {
  it('keeps rows that it saw, though others missed them since', async () => {
    const scene = createScene()
    const { test, walk } = scene
    const gone = without(upTo(30), 7)
    await walk()
    const { findMissing } = test.store
    test.store.findMissing = () => Promise.reject(new Error('killed'))
    await walk(upTo(30), { plan: BACKFILL, trigger: 'backfill' })
    test.store.findMissing = findMissing
    await walk(gone)

    await walk(gone, { plan: BACKFILL, trigger: 'backfill' })
    const lines = test.rows('SELECT * FROM sync_missing')
    await walk(gone)
    const afterOne = history(test)
    await walk(gone)

    expect(lines).toEqual([])
    expect(afterOne).toEqual([])
    expectRows(scene, gone)
  })
})
