import { expect, it } from 'vitest'
import { createClock } from '../../helpers/clock.ts'
import { forgetting } from '../../helpers/forgetting.ts'
import { ACME, jobOf } from '../../helpers/jobs.ts'
import { openTestMirror } from '../../helpers/test-mirror.ts'
import { begin } from '../stage.ts'

const ROWS = 20_000

/** Rows that may be written, indexes apart, before the event loop turns: about 50 ms of work. */
const MOST_AT_ONCE = 6000

const NUMBERS = `WITH RECURSIVE n (i) AS (SELECT 3 UNION ALL SELECT i + 1 FROM n WHERE i < ${ROWS})`

/** A mirror in which acme has many orders, as if pages had brought them; its rests turn the event loop. */
async function scene() {
  let mark = 0
  let most = 0
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
  /** The most rows that the task writes between two turns. */
  async function mostAtOnce(task: () => Promise<unknown>): Promise<number> {
    mark = written()
    most = 0
    await task()
    turn()
    return most
  }
  return { test, mostAtOnce, turn }
}

/** Gives a walk a line in each table that grows with its list. */
function grown(walkId: number): string {
  return `
    ${NUMBERS}
    INSERT INTO sync_pages (walk_id, ordinal, pass, page, items, keys, why, read_at)
    SELECT ${walkId}, i, 1, i, 0, '[]', 'forward', '2026-11-20T08:00:00.000Z' FROM n;
    ${NUMBERS}
    INSERT INTO sync_refreshed (walk_id, key) SELECT ${walkId}, 'x' || i FROM n;
  `
}

it('missing rows are noted, held back, removed and counted in batches', async () => {
  const { test, mostAtOnce } = await scene()
  const walk = await begin(test)
  await walk.page('{"id":1}', '{"id":15000}')

  const noting = await mostAtOnce(() => walk.missing())
  const again = await mostAtOnce(() => walk.missing())
  await walk.close()
  const second = await begin(test)
  await second.page('{"id":1}', '{"id":15000}')
  const judging = await mostAtOnce(async () =>
    expect(await second.missing()).toEqual({ removable: ROWS - 2, held: 0, live: ROWS }),
  )
  const holding = await mostAtOnce(async () =>
    expect(await second.close({ hold: 'brake' })).toMatchObject({ heldBack: { rows: ROWS - 2 } }),
  )
  const third = await begin(test)
  await third.page('{"id":1}', '{"id":2}')
  const removing = await mostAtOnce(async () => {
    expect(await third.missing()).toEqual({ removable: 0, held: ROWS - 3, live: ROWS })
    await third.close('remove')
  })

  expect(test.rows('SELECT id FROM orders ORDER BY id').map(({ id }) => id)).toEqual([1, 2, 15000])
  expect(test.rows('SELECT key, state FROM sync_missing')).toEqual([{ key: '15000', state: 'missed' }])
  for (const most of [noting, again, judging, holding, removing]) expect(most).toBeLessThan(MOST_AT_ONCE)
})

it('a search for missing rows that is stopped is done by who goes on with the walk', async () => {
  const { test } = await scene()
  const walk = await begin(test)
  await walk.page('{"id":1}')
  test.stop()

  await expect(walk.missing(true)).rejects.toThrow(/stopped while its missing rows were gone through/)

  const resumer = openTestMirror({ file: test.file, clock: test.clock })
  const resumed = await begin(resumer, undefined, { resume: walk.walk.id })
  expect(await resumed.missing(true)).toEqual({ removable: ROWS - 1, held: 0, live: ROWS })
})

it('what an abandoned walk has left is pruned in batches', async () => {
  const { test, mostAtOnce } = await scene()
  test.connection.exec(`${grown(1)} UPDATE sync_walks SET status = 'abandoned'`)

  const most = await mostAtOnce(() => test.store.prune(jobOf()))

  for (const table of ['sync_pages', 'sync_refreshed'])
    expect(test.value(`SELECT count(*) FROM ${table}`)).toBe(0)
  expect(most).toBeLessThan(MOST_AT_ONCE)
})

it('a job is forgotten in batches', async () => {
  const { test, mostAtOnce, turn } = await scene()
  test.connection.exec(grown(1))
  const { job } = forgetting(test, turn)

  const most = await mostAtOnce(() => job({ organization: ACME.id, collection: 'orders' }, true))

  for (const table of ['orders', 'orders_json', 'sync_pages', 'sync_refreshed'])
    expect(test.value(`SELECT count(*) FROM ${table}`)).toBe(0)
  expect(most).toBeLessThan(MOST_AT_ONCE)
})
