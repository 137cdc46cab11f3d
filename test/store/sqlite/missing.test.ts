import { expect, it } from 'vitest'
import { noteMissing, noteMissingInBatches } from '../../../src/store/core/missing.ts'
import { type Connection, runRule, SQLITE } from '../../../src/store/sqlite/driver.ts'
import { createTransact, runnerOn } from '../../../src/store/sqlite/transaction.ts'
import { ACME, GLOBEX, jobOf } from '../../helpers/jobs.ts'
import { beginTestWalk, openTestMirror } from '../../helpers/test-mirror.ts'

const AT = '2026-11-20T08:00:00.000Z'
const pages = (from: number, to: number) =>
  Array.from({ length: Math.ceil((to - from) / 5) }, (_, index) =>
    Array.from({ length: 5 }, (_at, at) => `{"id":${from + index * 5 + at}}`),
  )

/** Two walks of 100 orders beside the list of another organization: the last one has seen 30 to 69, a refresh 90, and 3 was missed before. */
async function scene() {
  const test = openTestMirror()
  const job = jobOf()
  const others = await beginTestWalk(test, jobOf({}, GLOBEX))
  const first = await beginTestWalk(test, job)
  for (const items of pages(0, 100)) {
    await first.saveItems(...items)
    await others.saveItems(...items)
  }
  test.connection.exec(`UPDATE sync_walks SET status = 'complete' WHERE id = ${first.walk.id}`)
  const { walk, saveItems } = await beginTestWalk(test, job)
  for (const items of pages(30, 70)) await saveItems(...items)
  test.connection.exec(`
    INSERT INTO sync_refreshed (walk_id, keys) VALUES (${walk.id}, '["90"]');
    INSERT INTO sync_missing VALUES ('${ACME.id}', 'orders', '3', 'missed', 1, '${AT}', 'removed');
    INSERT INTO sync_missing VALUES ('${ACME.id}', 'orders', '40', 'held', 1, '${AT}', 'removed');
  `)
  const judged = { job, rule: { walkId: walk.id, keyed: 40, atOnce: false }, at: AT }
  return { test, judged }
}

function noted(connection: Connection) {
  return connection.prepare('SELECT key, state, missed_by, reason FROM sync_missing ORDER BY key').all()
}

it('finds in batches what one statement finds', async () => {
  const { test, judged } = await scene()
  const { connection, clock } = test
  connection.exec('SAVEPOINT before')
  runRule(connection, noteMissing(SQLITE, judged))
  const expected = noted(connection)
  connection.exec('ROLLBACK TO before; RELEASE before')
  const stop = new AbortController()
  const patience = { now: clock.now, sleep: clock.sleep, signal: stop.signal }
  const runner = runnerOn(connection, createTransact({ connection, ...patience }), patience)
  const find = () => noteMissingInBatches(runner, () => judged, { rows: 7, pages: 3 })

  await find()

  expect(expected).toHaveLength(59)
  expect(noted(connection)).toEqual(expected)
  expect(connection.prepare('SELECT count(*) FROM sqlite_temp_schema').pluck().get()).toBe(0)

  // Again, as a walk that was killed over it does.
  await find()
  expect(noted(connection)).toEqual(expected)
  stop.abort()
  await expect(find()).rejects.toThrow(/stopped while missing rows were looked for/)
})
