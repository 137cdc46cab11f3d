import fs from 'node:fs'
import path from 'node:path'
import { describe, expect, it } from 'vitest'
import type { JobOptions } from '../../src/sync/job.ts'
import { createClock } from '../helpers/clock.ts'
import { GLOBEX, jobOf } from '../helpers/jobs.ts'
import { itemOf } from '../helpers/pages.ts'
import {
  ACCEPT,
  BACKFILL,
  createScene,
  expectRows,
  HOUR,
  held,
  history,
  type Scene,
  without,
} from '../helpers/removal-scene.ts'
import { runOnce } from '../helpers/run-once.ts'
import { scriptedList, upTo } from '../helpers/scripted-list.ts'
import { tempFolder } from '../helpers/temp-folder.ts'

// A walk is judged in many transactions. Here a process dies before one of them, at each in turn, and the next one has to
// come to the same end.

const ALL = upTo(400)
const SOME_GONE = ALL.filter((id) => id % 10 !== 3)
const MOST_GONE = ALL.filter((id) => id % 2 !== 1)

type Walk = [ids: readonly number[], options?: Partial<JobOptions>]

/** The file of a mirror that has lived through these walks. */
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

/** From the last page on so many transactions are made, its own among them, and then none. */
function killAfter({ test, list }: Scene, transactions: number): void {
  const { connection } = test
  const original = connection.transaction.bind(connection)
  // The page before the last is written while the last one is in flight.
  let left = transactions + 1
  // Its pages, and one of them once more.
  const asksAll = () => list.asked.length > Math.ceil(list.ids.length / 100)
  connection.transaction = ((task: () => unknown) =>
    original(() => {
      if (asksAll() && left-- <= 0) throw new Error('killed')
      return task()
    })) as typeof connection.transaction
}

/** All that the judging of a walk writes, but for times. */
function outcome({ test }: Scene) {
  const { rows } = test
  return {
    live: rows('SELECT id FROM orders ORDER BY id'),
    raw: rows('SELECT id FROM orders_raw ORDER BY id'),
    history: history(test),
    missing: rows('SELECT mark, state, missed_by, reason FROM sync_missing ORDER BY mark'),
    jobs: rows(
      'SELECT rows, removals_held, held_why, judged_walk, scope_path, scope_filters, scope_mixed FROM sync_jobs',
    ),
    walks: rows('SELECT id, status, coverage FROM sync_walks ORDER BY id'),
    removed: test.value('SELECT sum(rows_removed) FROM sync_runs'),
  }
}

describe('a walk whose process dies while it is judged', () => {
  it.each<[string, Walk[], Walk, Record<string, unknown>]>([
    ['rows that are missed once', [[ALL]], [SOME_GONE], { live: 400, held: 0 }],
    ['rows that go', [[ALL], [SOME_GONE]], [SOME_GONE], { live: 360, held: 0 }],
    ['rows that are held back', [[ALL], [MOST_GONE]], [MOST_GONE], { live: 400, held: 200 }],
    [
      'rows that were held back, and go',
      [[ALL], [MOST_GONE], [MOST_GONE]],
      [MOST_GONE, ACCEPT],
      { live: 200, held: 0 },
    ],
    [
      'rows that would be held back, and go',
      [[ALL], [MOST_GONE]],
      [MOST_GONE, ACCEPT],
      { live: 200, held: 0 },
    ],
  ])('before any transaction comes to the same end: %s', async (_what, before, [ids, options], expected) => {
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

    expect(deaths).toBeGreaterThan(5)
    expect({ live: wanted.live.length, held: held(unharmed.test) }).toEqual(expected)
  })

  it('leaves held back what it had not removed yet, when nobody accepts it any more', async () => {
    const file = await fileAfter([[ALL], [MOST_GONE]])
    for (let transactions = 6; transactions < 16; transactions++) {
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

describe('a walk that is judged while another job has the key column become TEXT', () => {
  it('looks at the rows from the first again, since they stand in another order then', async () => {
    const base = createClock()
    let atNextRest: (() => Promise<unknown>) | null = null
    const sleep = async (ms: number) => {
      base.advance(ms)
      const task = atNextRest
      atNextRest = null
      await task?.()
    }
    const { test, walk } = createScene({ perPage: 100 }, { clock: { ...base, sleep } })
    const texts = scriptedList({ ids: [1], instead: (page) => ({ ...page, items: [itemOf('{"id":"x"}')] }) })
    await walk(ALL)
    const { findMissing } = test.mirror
    test.mirror.findMissing = (...values) => {
      // Behind the first step, which looks at the first 64.
      atNextRest = () => runOnce(test, texts, { job: jobOf({}, GLOBEX) })
      return findMissing(...values)
    }

    await walk(without(ALL, 150))

    expect(test.value(`SELECT count(*) FROM orders WHERE typeof(id) = 'text'`)).toBe(401)
    expect(test.rows('SELECT mark, state FROM sync_missing')).toEqual([{ mark: '150', state: 'missed' }])
  })
})

describe('a walk that is judged late', () => {
  it('does not take for gone what another walk has seen meanwhile', async () => {
    const scene = createScene({ ids: [1, 2, 3] })
    const { test, list, walk } = scene
    await walk()
    // A full backfill that comes in one answer, and is not judged.
    const complete = test.mirror.findMissing
    test.mirror.findMissing = () => Promise.reject(new Error('killed'))
    await walk([1, 2, 3], { plan: BACKFILL, trigger: 'backfill' })
    test.mirror.findMissing = complete
    await walk([1, 2, 3, 4])

    await walk([1, 2, 3, 4], { plan: BACKFILL, trigger: 'backfill' })

    expect(list.asked).toEqual([1, 1, 1, 2, 1])
    expectRows(scene, [1, 2, 3, 4])
    expect(history(test)).toEqual([])
    expect(test.value('SELECT count(*) FROM sync_seen_since')).toBe(0)
  })

  it('keeps what it saw itself, though others have missed it since', async () => {
    const scene = createScene()
    const { test, walk } = scene
    const gone = without(upTo(30), 7)
    await walk()
    const { findMissing } = test.mirror
    test.mirror.findMissing = () => Promise.reject(new Error('killed'))
    await walk(upTo(30), { plan: BACKFILL, trigger: 'backfill' })
    test.mirror.findMissing = findMissing
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

  it('counts for nothing when it is abandoned before its end', async () => {
    const scene = createScene()
    const { test, walk } = scene
    const gone = without(upTo(30), 7)
    await walk()
    const { completeWalk } = test.mirror
    test.mirror.completeWalk = () => Promise.reject(new Error('killed'))
    await walk(gone)
    test.mirror.completeWalk = completeWalk
    // Longer than resumeWithin.
    test.clock.advance(48 * HOUR)

    await walk(gone)
    const afterOne = test.rows('SELECT missed_by, state FROM sync_missing')
    await walk(gone)

    expect(afterOne).toEqual([{ missed_by: 3, state: 'missed' }])
    expectRows(scene, gone)
  })
})
