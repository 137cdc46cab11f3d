import fs from 'node:fs'
import { setImmediate, setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { replay } from '../../../../src/sync/resume.ts'
import type { Clock } from '../../../helpers/clock.ts'
import { ACME, jobOf } from '../../../helpers/jobs.ts'
import { upTo } from '../../../helpers/scripted-list.ts'
import {
  BEGIN,
  beginTestWalk,
  leaseOf,
  openTestMirror,
  RULES,
  type TestMirror,
} from '../../../helpers/test-mirror.ts'

// Nothing may block the event loop for more than 250 ms. The bound here is wide, for busy machines; without
// batches the work would block for seconds.
const MUCH_MS = 1000

const REAL: Clock = { now: Date.now, sleep: (ms) => sleep(ms), advance: () => {} }

/** Gives acme so many orders, as if pages had brought them. */
function fill({ connection }: TestMirror, count: number) {
  const numbers = `WITH RECURSIVE n (i) AS (SELECT 3 UNION ALL SELECT i + 1 FROM n WHERE i < ${count})`
  const time = `'2026-11-20T08:00:00.000Z', '2026-11-20T08:00:00.000Z'`
  connection.exec(`
    ${numbers}
    INSERT INTO orders (_organization_id, _first_seen_at, _changed_at, _row, id, state, total)
    SELECT '${ACME.id}', ${time}, i, i, 'paid', i FROM n;
    ${numbers}
    INSERT INTO orders_json (_row, _seq, _change, _json)
    SELECT i, 1, 'added', format('{"id":%d,"state":"paid","total":%d}', i, i) FROM n;
    UPDATE sync_seq SET rows = ${count};
  `)
}

/** A walk with so many pages of 25 items in the page ledger. */
async function walkWithLedger(test: TestMirror, pages: number): Promise<number> {
  const { walk, saveItems } = await beginTestWalk(test, jobOf())
  await saveItems('{"id":1}')
  test.connection.exec(`
    WITH RECURSIVE n (i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i <= ${pages})
    INSERT INTO sync_pages (walk_id, ordinal, pass, page, total, next_page, last_page, items, keys, read_at, why)
    SELECT ${walk.id}, i, 1, i, 500000, i + 1, 20001, 25, (
      SELECT json_group_array(CAST(i * 25 + value AS TEXT)) FROM json_each('${JSON.stringify(upTo(25))}')
    ), '2026-11-20T08:00:00.000Z', 'forward'
    FROM n
  `)
  return walk.id
}

/** How often the timer would like to run. */
const TICK_MS = 25

/**
 * Runs the task, and measures for how long the event loop of this process stood still meanwhile, at most, apart from time in
 * which the machine was busy with others. Milliseconds.
 */
async function longestStandstill<T>(task: () => Promise<T>): Promise<{ result: T; standstill: number }> {
  let longest = 0
  let last = elapsed()
  const look = () => {
    const now = elapsed()
    longest = Math.max(longest, now - last - TICK_MS)
    last = now
  }
  const timer = setInterval(look, TICK_MS)
  try {
    const result = await task()
    // What stood still at the very end.
    await new Promise((resolve) => setTimeout(resolve, TICK_MS))
    look()
    return { result, standstill: longest }
  } finally {
    clearInterval(timer)
  }
}

/** Milliseconds without those in which the main thread was ready to run and had no core; only Linux tells of these. */
function elapsed(): number {
  const file = '/proc/self/schedstat'
  const waited = fs.existsSync(file) ? Number(fs.readFileSync(file, 'utf8').split(' ')[1]) : 0
  return performance.now() - waited / 1e6
}

describe('the event loop is never blocked for long', () => {
  it('while the key of 200,000 orders becomes TEXT', async () => {
    const test = openTestMirror({ clock: REAL })
    const { saveItems } = await beginTestWalk(test, jobOf())
    await saveItems('{"id":1,"state":"open","total":1}', '{"id":2,"state":"open","total":1}')
    fill(test, 200_000)

    const { result, standstill } = await longestStandstill(() =>
      saveItems('{"id":"x-1","total":1,"further":1}'),
    )

    expect(result).toMatchObject({ added: 1 })
    expect(standstill).toBeLessThan(MUCH_MS)
    expect(test.value(`SELECT count(*) FROM orders WHERE typeof(id) = 'text'`)).toBe(200_001)
    expect(test.value(`SELECT count(*) FROM sqlite_schema WHERE name LIKE '\\_new%' ESCAPE '\\'`)).toBe(0)
    expect(test.value('PRAGMA quick_check')).toBe('ok')
  })

  it('while a walk of 20,000 pages is resumed, and while its page ledger is deleted', async () => {
    const test = openTestMirror({ clock: REAL })
    const id = await walkWithLedger(test, 20_000)

    const { signal } = new AbortController()
    const resuming = await longestStandstill(() =>
      replay(
        { id, rules: RULES },
        { job: jobOf(), store: test.store, yieldToEventLoop: setImmediate, signal },
      ),
    )
    const forgetting = await longestStandstill(() =>
      test.store.beginRun(leaseOf(jobOf()), { ...BEGIN, abandon: [id] }),
    )
    const pruning = await longestStandstill(() => test.store.prune(jobOf()))

    expect(resuming.standstill).toBeLessThan(MUCH_MS)
    expect(resuming.result?.items).toBe(500_001)
    expect(resuming.result?.has('500000')).toBe(true)
    expect(forgetting.standstill).toBeLessThan(MUCH_MS)
    expect(pruning.standstill).toBeLessThan(MUCH_MS)
    expect(test.value('SELECT count(*) FROM sync_pages')).toBe(0)
  })
})
