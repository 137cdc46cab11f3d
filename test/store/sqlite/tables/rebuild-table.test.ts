import { expect, it } from 'vitest'
import { MirrorError } from '../../../../src/errors.ts'
import { GLOBEX, jobOf } from '../../../helpers/jobs.ts'
import { dump, openTestMirror, type TestMirror } from '../../../helpers/test-mirror.ts'
import { begin } from '../../stage.ts'

/** All rows but the one that comes last, in their order, keys as texts. */
const rowsOf = (test: TestMirror) =>
  ['orders', 'orders_raw', 'orders_history'].map((table) =>
    test
      .rows(`SELECT * FROM ${table} ORDER BY _organization_id, CAST(id AS TEXT)`)
      .map((row) => ({ ...row, id: String(row.id) }))
      .filter(({ id }) => !id.endsWith('4')),
  )

const ofUser = (test: TestMirror) =>
  test.rows(`SELECT type, name, tbl_name, sql FROM sqlite_schema WHERE name LIKE 'my%' ORDER BY name`)

/** Tables with rows, history, and indexes of a user. */
async function scene() {
  const test = openTestMirror()
  const acme = await begin(test)
  const globex = await begin(test, jobOf({}, GLOBEX))
  await acme.page(...[1, 2, 3].map((id) => `{"id":${id},"total":${id},"state":"paid"}`))
  await globex.page(...[1, 2].map((id) => `{"id":${id},"total":${id}0,"state":"open"}`))
  await acme.page('{"id":2,"total":22,"state":"paid"}')
  test.connection.exec(`
    CREATE INDEX my_partial ON orders (total) WHERE state = 'paid';
    CREATE INDEX my_expression ON ORDERS (lower(state) || ' (INTEGER)', id DESC);
    CREATE UNIQUE INDEX "my ""unique""" ON orders_history (_organization_id, id, _json);
  `)
  return { test, acme }
}

it('a table whose column becomes REAL and whose key becomes TEXT keeps every row, and what users have put there', async () => {
  const { test, acme } = await scene()
  const before = [ofUser(test), rowsOf(test)]

  await acme.page('{"id":"x-4","total":0.5,"state":"open"}')

  const declared = `SELECT type FROM pragma_table_info('orders') WHERE name IN ('id', 'total')`
  expect(test.rows(declared).map(({ type }) => type)).toEqual(['TEXT', 'REAL'])
  expect([ofUser(test), rowsOf(test)]).toEqual(before)
  expect(test.rows(`SELECT name FROM sqlite_schema WHERE name LIKE '%@_new@_%' ESCAPE '@'`)).toEqual([])
  expect(test.value('PRAGMA integrity_check')).toBe('ok')
})

it('a table is as it was if its change fails', async () => {
  const { test, acme } = await scene()
  // This unique index then has the same value for all rows, so it cannot be recreated.
  test.connection.exec(`
      CREATE UNIQUE INDEX my_types ON orders (
        _organization_id,
        CASE WHEN typeof(id) = 'text' OR typeof(total) = 'real' THEN 1 ELSE id END
      )
    `)
  const before = dump(test)

  const saving = acme.page('{"id":"x-4","total":0.5,"state":"open"}')

  await expect(saving).rejects.toThrow(MirrorError)
  await expect(saving).rejects.toThrow(/my_types/)
  expect(dump(test)).toEqual(before)
})
