import fs from 'node:fs'
import path from 'node:path'
import Database from 'better-sqlite3'
import { describe, expect, it } from 'vitest'
import { buildCopy } from '../../../../src/store/sqlite/publish/build.ts'
import { makeConfigured } from '../../../../src/store/sqlite/tables/collection.ts'
import { jobOf } from '../../../helpers/jobs.ts'
import { beginTestWalk, openTestMirror, type Row } from '../../../helpers/test-mirror.ts'

async function createMirror() {
  const test = openTestMirror()
  makeConfigured(test.connection, [{ name: 'visits', key: ['_a.b', 'at', 'c'] }])
  const { saveItems } = await beginTestWalk(test, jobOf())
  await saveItems('{"id":1,"a":1,"items":[{"sku":"x"}]}', '{"id":2,"a":"one"}')
  const copy = path.join(path.dirname(test.file), 'copy.db')
  fs.writeFileSync(copy, '')
  buildCopy(test.file, copy, 2 ** 30, () => {})
  const connection = new Database(copy, { readonly: true })
  const rows = (sql: string) => connection.prepare(sql).all() as Row[]
  return { test, copy: rows }
}

/** What has no line in `sync_help`. */
const UNTOLD = `
  SELECT t.name AS "table", c.name AS "column"
  FROM sqlite_schema AS t, pragma_table_info(t.name) AS c
  WHERE t.type IN ('table', 'view') AND t.name NOT LIKE 'sqlite@_%' ESCAPE '@'
    AND NOT EXISTS (SELECT 1 FROM sync_help AS h WHERE h."table" = t.name AND h."column" = c.name)
    AND NOT EXISTS (SELECT 1 FROM sync_help AS h WHERE h."table" = t.name AND h.says LIKE 'internal%')
`

const WITHOUT_LINE = `
  SELECT name FROM sqlite_schema
  WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite@_%' ESCAPE '@'
    AND name NOT IN (SELECT "table" FROM sync_help WHERE "column" IS NULL)
`

/** DuckDB reads a column of a view that declares no type as bytes. */
const WITHOUT_TYPE = `
  SELECT t.name AS "table", c.name AS "column", c.type
  FROM sqlite_schema AS t, pragma_table_info(t.name) AS c
  WHERE t.type IN ('table', 'view') AND t.name NOT LIKE 'sqlite@_%' ESCAPE '@'
    AND c.type NOT IN ('INTEGER', 'INT', 'REAL', 'TEXT')
`

describe('each column of each table and view', () => {
  it('declares its type, so that strict readers take texts for texts', async () => {
    const { test, copy } = await createMirror()

    expect(test.connection.prepare(WITHOUT_TYPE).all()).toEqual([])
    expect(copy(WITHOUT_TYPE)).toEqual([])
  })
})

describe('sync_help', () => {
  it('tells of every table of the mirror and of a copy', async () => {
    const { test, copy } = await createMirror()

    expect(test.rows(WITHOUT_LINE)).toEqual([])
    expect(copy(WITHOUT_LINE)).toEqual([])
  })

  it('tells of every column of every table and view, once', async () => {
    const { test, copy } = await createMirror()
    expect(copy(UNTOLD)).toEqual([])
    expect(test.rows(UNTOLD)).toEqual([])
    for (const rows of [copy, test.rows]) {
      const twice = 'SELECT "table", "column" FROM sync_help GROUP BY 1, 2 HAVING count(*) > 1'
      expect(rows(twice)).toEqual([])
    }
  })

  it('says where the values of a column are in an item', async () => {
    const { copy } = await createMirror()

    expect(
      copy(
        `SELECT "table", "column", says FROM sync_help WHERE "column" IN ('sku', 'a', 'a__text', 'c') AND "table" NOT LIKE '%@_%' ESCAPE '@' OR "column" = 'sku'`,
      ),
    ).toEqual([
      { table: 'visits', column: 'c', says: 'the key, which tells the items of an organization apart' },
      { table: 'orders', column: 'a', says: 'the value at $.a of the item' },
      {
        table: 'orders',
        column: 'a__text',
        says: 'values at $.a of the item that do not fit its column, as text',
      },
      { table: 'orders__items', column: 'sku', says: 'the value at $.sku of the element' },
    ])
  })

  it('of a copy tells of nothing that it does not have', async () => {
    const { copy } = await createMirror()

    const absent = copy(`
      SELECT "table", "column" FROM sync_help AS h
      WHERE "column" IS NOT NULL
        AND NOT EXISTS (SELECT 1 FROM pragma_table_info(h."table") AS c WHERE c.name = h."column")
    `)

    expect(absent).toEqual([])
    expect(copy(`SELECT "table" FROM sync_help WHERE says LIKE 'internal%'`)).toEqual([])
  })
})
