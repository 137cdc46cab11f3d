import fs from 'node:fs'
import path from 'node:path'
import Database from 'better-sqlite3'
import { describe, expect, it } from 'vitest'
import { buildCopy } from '../../../../src/store/sqlite/publish/build.ts'
import { makeConfigured } from '../../../../src/store/sqlite/tables/collection.ts'
import { jobOf } from '../../../helpers/jobs.ts'
import { beginTestWalk, openTestMirror } from '../../../helpers/test-mirror.ts'

// Names of the API that are those of our own columns, of SQLite's, or those of each other.

const OURS = '"at":"t","change":"c","changed_fields":[1],"before":"b","after":"a"'
const OURS_TOO = '"_organization":"o","_organization_id":"p","_parent_id":7,"_index":9,"_json":"j"'
const LINE = `{"rowid":9,"sku":"x","id":9223372036854775807,"Id":1,"m":1,${OURS},${OURS_TOO}}`
const ITEMS = [
  `{"id":1,"rowid":5,"oid":6,"Name":1,"name":2,"NAME":3,"lines":[${LINE},{"rowid":2,"sku":"y","m":"text"},null],${OURS},${OURS_TOO}}`,
  `{"id":2,"big":-9223372036854775808,"long":12345678901234567890,"far":1e400,"nul":"a\\u0000b","x\\"y'":1,"=z":"=1+1"}`,
  `{"id":3,"huge":"${'x'.repeat(100_000)}","wide":{${Array.from({ length: 600 }, (_, n) => `"c${n}":${n}`).join()}}}`,
]

async function copyOf(key: readonly string[], items: readonly string[]) {
  const test = openTestMirror()
  makeConfigured(test.connection, [{ name: 'orders', key }])
  const { saveItems } = await beginTestWalk(test, jobOf({ key: [...key] }))
  await saveItems(...items)
  const file = path.join(path.dirname(test.file), 'copy.db')
  fs.writeFileSync(file, '')
  buildCopy(test.file, file, 2 ** 30, () => {})
  return { test, file }
}

/** The columns and the rows of a table, whole numbers exact. */
function contents(file: string, table: string) {
  const connection = new Database(file, { readonly: true })
  try {
    const statement = connection.prepare(`SELECT * FROM ${table}`).safeIntegers()
    const rows = statement.raw().all() as unknown[][]
    return {
      columns: statement.columns().map(({ name }) => name),
      rows: rows.map((row) => row.map(String).join('|')).toSorted(),
    }
  } finally {
    connection.close()
  }
}

describe('a copy of a mirror with hostile names and values', () => {
  it.each(['orders', 'orders_raw', 'orders_changes', 'orders__lines'])(
    'holds %s as it is in the mirror',
    async (table) => {
      const { test, file } = await copyOf(['id'], ITEMS)

      expect(contents(file, table)).toEqual(contents(test.file, table))
      expect(contents(file, table).rows.length).toBeGreaterThan(1)
    },
  )

  it('finds the elements of an item by an index', async () => {
    const { file } = await copyOf(['id'], ITEMS)

    expect(
      contents(file, "pragma_table_info('orders__lines') WHERE pk > 0").rows.map((row) => row.split('|')[1]),
    ).toEqual(['_organization_id', '_parent_id', '_index'])
  })

  it('is made without a view that reads what a user has dropped', async () => {
    const { test, file } = await copyOf(['id'], ITEMS)
    test.connection.exec('DROP TABLE orders')
    fs.writeFileSync(file, '')

    buildCopy(test.file, file, 2 ** 30, () => {})

    expect(contents(file, "sqlite_schema WHERE name LIKE 'orders%' AND type = 'table'").rows.length).toBe(3)
  })

  it('is made although names of arrays and fields, put together, are alike', async () => {
    const item = '{"id":1,"x":[{"id_by_c_id":1}],"x_by_id":[{"c_id":3}],"X_BY_ID":[{"C_id":4}]}'
    const { file } = await copyOf(['id'], [item])

    expect(contents(file, 'orders__x').rows).toHaveLength(1)
    expect(contents(file, 'orders__x_by_id').rows).toHaveLength(1)
  })
})

describe('a key that has the name of a column of events', () => {
  const KEYED = '{"at":7,"Change":"x","after":"y","v":1}'

  it('gets another one there, so that queries on events mean the same in every mirror', async () => {
    const { test, file } = await copyOf(['at', 'Change', 'after'], [KEYED])

    for (const one of [test.file, file]) {
      const connection = new Database(one, { readonly: true })
      const [event] = connection.prepare('SELECT * FROM orders_changes').all()
      const columns = connection.prepare(
        `SELECT "column" AS name FROM sync_help WHERE "table" = 'orders_changes'`,
      )
      const told = columns.pluck().all()
      connection.close()
      expect(event).toMatchObject({ at_2: 7, Change_2: 'x', after_2: 'y', change: 'added', after: KEYED })
      expect(told).toEqual(expect.arrayContaining(Object.keys(event as object)))
    }
  })
})
