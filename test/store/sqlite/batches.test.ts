import { expect, it } from 'vitest'
import { InterruptedError } from '../../../src/errors.ts'
import { createClock } from '../../helpers/clock.ts'
import { forgetting } from '../../helpers/forgetting.ts'
import { ACME, jobOf } from '../../helpers/jobs.ts'
import { upTo } from '../../helpers/scripted-list.ts'
import { openTestMirror } from '../../helpers/test-mirror.ts'
import { begin } from '../stage.ts'

// What takes long is done in batches: the event loop turns between them, and what is stopped there is done by who goes on.

const ROWS = 20_000

/** Rows that may be written, indexes apart, before the event loop turns: about 50 ms of work. */
const MOST_AT_ONCE = 6000

const item = (id: number) => `{"id":${id}}`

const NUMBERS = `WITH RECURSIVE n (i) AS (SELECT 3 UNION ALL SELECT i + 1 FROM n WHERE i < ${ROWS})`

/** A mirror in which acme has many orders, as if pages had brought them; its rests turn the event loop. */
async function scene() {
  let [mark, most] = [0, 0]
  const written = () => Number(connection.prepare('SELECT total_changes()').pluck().get())
  function turn() {
    most = Math.max(most, written() - mark)
    mark = written()
  }
  const clock = createClock()
  const sleep = async (ms: number) => {
    turn()
    await clock.sleep(ms)
  }
  const test = openTestMirror({ clock: { ...clock, sleep } })
  const { connection } = test
  await (await begin(test)).page('{"id":1}', '{"id":2}')
  connection.exec(`
    ${NUMBERS}
    INSERT INTO orders (_organization_id, _first_seen_at, _changed_at, _row, id)
    SELECT '${ACME.id}', '2026-11-20T08:00:00.000Z', '2026-11-20T08:00:00.000Z', i, i FROM n;
    ${NUMBERS}
    INSERT INTO orders_json (_row, _seq, _change, _json) SELECT i, 1, 'added', format('{"id":%d}', i) FROM n;
    UPDATE sync_seq SET rows = ${ROWS};
    UPDATE sync_jobs SET rows = ${ROWS} WHERE rows > 0;
  `)
  /** What the task comes to. The event loop must turn often enough meanwhile. */
  async function inBatches<T>(task: () => Promise<T>): Promise<T> {
    mark = written()
    most = 0
    const result = await task()
    turn()
    expect(most).toBeLessThan(MOST_AT_ONCE)
    return result
  }
  /** Gives the first walk many lines in each table that grows with its list, and many runs. */
  const grow = () =>
    connection.exec(`
      ${NUMBERS}
      INSERT INTO sync_pages (walk_id, ordinal, pass, page, items, keys, why, read_at)
      SELECT 1, i, 1, i, 0, '[]', 'forward', '2026-11-20T08:00:00.000Z' FROM n;
      ${NUMBERS}
      INSERT INTO sync_refreshed (walk_id, key) SELECT 1, 'x' || i FROM n;
      ${NUMBERS}
      INSERT INTO sync_runs (organization_id, collection, trigger, status, started_at)
      SELECT '${ACME.id}', 'orders', 'refresh', 'succeeded', '2026-11-20T08:00:00.000Z' FROM n;
    `)
  const countsOf = (...tables: string[]) => tables.map((name) => test.value(`SELECT count(*) FROM ${name}`))
  return { test, inBatches, turn, grow, countsOf }
}

it('missing rows are noted, held back, removed and counted in batches', async () => {
  const { test, inBatches, countsOf } = await scene()
  const walked = async (...ids: number[]) => {
    const walk = await begin(test)
    await walk.page(...ids.map(item))
    return walk
  }
  const first = await walked(1, 15_000)
  await inBatches(() => first.missing())
  await inBatches(() => first.missing())
  await first.close()
  const second = await walked(1, 15_000)
  expect(await inBatches(() => second.missing())).toEqual({ removable: ROWS - 2, held: 0, live: ROWS })
  const { heldBack } = await inBatches(() => second.close('hold'))
  expect(heldBack).toMatchObject({ rows: ROWS - 2 })
  const third = await walked(1, 2)
  expect(await inBatches(() => third.missing())).toEqual({ removable: 0, held: ROWS - 3, live: ROWS })
  await inBatches(() => third.close('remove'))

  expect(test.rows('SELECT id FROM orders ORDER BY id').map(({ id }) => id)).toEqual([1, 2, 15_000])
  expect(test.rows('SELECT key, state FROM sync_missing')).toEqual([{ key: '15000', state: 'missed' }])
  expect(countsOf('orders_json')).toEqual([3])
})

it('what an abandoned walk has left is pruned in batches', async () => {
  const { test, inBatches, grow, countsOf } = await scene()
  grow().exec("UPDATE sync_walks SET status = 'abandoned'")

  await inBatches(() => test.store.prune(jobOf()))

  expect(countsOf('sync_pages', 'sync_refreshed')).toEqual([0, 0])
})

it('a job is forgotten in batches', async () => {
  const { test, inBatches, turn, grow, countsOf } = await scene()
  grow()
  const { job } = forgetting(test, turn)

  await inBatches(() => job({ organization: ACME.id, collection: 'orders' }, true))

  const tables = ['orders', 'orders_json', 'sync_pages', 'sync_refreshed', 'sync_runs']
  expect(countsOf(...tables)).toEqual([0, 0, 0, 0, 0])
})

it('a walk that is stopped while rows are searched, or between two batches of removals, stays open; who goes on does the rest, and a follower sees each row once', async () => {
  const test = openTestMirror()
  await (await begin(test)).page(...upTo(5000).map(item))
  const walk = await begin(test)
  await walk.page(...upTo(100).map(item))
  test.stop()
  await expect(walk.missing(true)).rejects.toThrow(/^stopped$/)
  const resume = async () => {
    const next = openTestMirror({ file: test.file, clock: test.clock })
    return { next, resumed: await begin(next, jobOf(), { resume: walk.walk.id }) }
  }
  const { next, resumed } = await resume()
  expect(await resumed.missing(true)).toEqual({ removable: 4900, held: 0, live: 5000 })
  next.stop()
  const counts = () =>
    test.rows(`
      SELECT
        (SELECT count(*) FROM orders) AS live,
        (SELECT count(*) FROM orders_json) AS json,
        (SELECT count(*) FROM orders_history WHERE _reason = 'removed') AS gone,
        (SELECT rows FROM sync_jobs WHERE rows > 0) AS counted,
        (SELECT sum(rows_removed) FROM sync_runs) AS removed
    `)

  await expect(resumed.close('remove')).rejects.toThrow(InterruptedError)

  expect(counts()).toEqual([{ live: 4000, json: 4000, gone: 1000, counted: 4000, removed: 1000 }])
  const last = await resume()
  expect(await last.resumed.missing(true)).toEqual({ removable: 3900, held: 0, live: 4000 })
  expect(await last.resumed.close('remove')).toEqual({ heldBack: null })
  expect(counts()).toEqual([{ live: 100, json: 100, gone: 4900, counted: 100, removed: 4900 }])
  await (await begin(last.next)).page(item(2000), item(6000))
  const events = 'SELECT id, change FROM orders_changes WHERE id IN (2000, 6000) ORDER BY seq'
  expect(test.rows(events).map(({ id, change }) => [id, change].join(' '))).toEqual([
    '2000 added',
    '2000 removed',
    '2000 returned',
    '6000 added',
  ])
})
