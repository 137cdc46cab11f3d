import { describe, expect, it } from 'vitest'
import { ACME, jobOf } from '../../../helpers/jobs.ts'
import { createLongWork } from '../../../helpers/long-work.ts'
import { beginTestWalk, openTestMirror, type Row, type TestMirror } from '../../../helpers/test-mirror.ts'

// Earlier versions made a key TEXT over several transactions, and could be killed in between: while they
// copied rows, with triggers that kept the copy up to date, or while they deleted the old rows.

const TABLES = ['orders', 'orders_raw', 'orders_history']

const VALUES: Record<string, string> = {
  orders: '"_organization_id", "_first_seen_at", "_changed_at", "id", "total"',
  orders_raw: '"_organization_id", "id", "_json", "_first_seen_at", "_changed_at"',
  orders_history: '"_organization_id", "id", "_json", "_valid_from", "_valid_to", "_reason"',
}

/** The copy of a table as such a version made it, with its first rows and triggers. */
function copyOf(table: string, rows: number): string {
  const columns = VALUES[table] ?? ''
  const values = (row: string) =>
    columns
      .split(', ')
      .map((column) => (column === '"id"' ? `CAST(${row}"id" AS TEXT)` : `${row}${column}`))
      .join(', ')
  const copy = `"_new_${table}"`
  const isCopied = (row: string) => `${row}._rowid_ <= (SELECT max(_rowid_) FROM ${copy})`
  const insert = `INSERT INTO ${copy} (_rowid_, ${columns}) SELECT new._rowid_, ${values('new.')} WHERE ${isCopied('new')};`
  const remove = `DELETE FROM ${copy} WHERE _rowid_ = old._rowid_;`
  return `
    CREATE TABLE ${copy} (${columns.replaceAll('"id"', '"id" TEXT NOT NULL').replace('"total"', '"total" INTEGER')});
    CREATE TRIGGER "_new_${table}_insert" AFTER INSERT ON "${table}" WHEN ${isCopied('new')} BEGIN ${insert} END;
    CREATE TRIGGER "_new_${table}_update" AFTER UPDATE ON "${table}" WHEN ${isCopied('old')} BEGIN ${remove} ${insert} END;
    CREATE TRIGGER "_new_${table}_delete" AFTER DELETE ON "${table}" WHEN ${isCopied('old')} BEGIN ${remove} END;
    INSERT INTO ${copy} (_rowid_, ${columns}) SELECT _rowid_, ${values('')} FROM "${table}" LIMIT ${rows};
  `
}

const COPYING = `${copyOf('orders', 4)} ${copyOf('orders_raw', 2)}`

const OLD_ROWS = TABLES.map(
  (table) => `
    CREATE TABLE "_new_${table}" AS SELECT * FROM "${table}" WHERE id > 2;
    CREATE INDEX "_new_${table}_by_end" ON "_new_${table}" ("_organization_id", "id");
  `,
).join('')

/** Four orders, one of them with a history. */
async function scene(left: string) {
  const first = openTestMirror()
  const { saveItems } = await beginTestWalk(first, jobOf())
  await saveItems(...[1, 2, 3, 4].map((id) => `{"id":${id},"total":${id}}`))
  await saveItems('{"id":2,"total":22}')
  first.connection.exec(left)
  first.close()
  return openTestMirror({ file: first.file, clock: first.clock })
}

function expectClean(test: TestMirror): void {
  expect(test.rows(`SELECT name FROM sqlite_schema WHERE name LIKE '%\\_new\\_%' ESCAPE '\\'`)).toEqual([])
  expect(test.value('PRAGMA integrity_check')).toBe('ok')
}

const live = (test: TestMirror) =>
  test
    .rows('SELECT CAST(id AS TEXT) AS id, total FROM orders ORDER BY _rowid_')
    .map((row) => Object.values(row))

const ORDERS = { organization: ACME.id, collection: 'orders' }

const LIVE = [
  ['1', 1],
  ['2', 22],
  ['3', 3],
  ['4', 4],
]

describe.each([
  ['a copy that was under way', COPYING],
  ['old rows', OLD_ROWS],
])('%s, left by an earlier version', (_what, left) => {
  it.each<[string, string, Row]>([
    ['a number', '{"id":5,"total":5}', { type: 'integer' }],
    ['the text for which the key has to change', '{"id":"x-5","total":5}', { type: 'text' }],
  ])('is dropped with the next page, with %s, and no row is lost', async (_key, item, type) => {
    const test = await scene(left)
    const { saveItems } = await beginTestWalk(test, jobOf())

    const saved = await saveItems(item, '{"id":1,"total":1}')

    expect(saved).toMatchObject({ added: 1, changed: 0 })
    expect(live(test)).toEqual([...LIVE, [item.includes('x-5') ? 'x-5' : '5', 5]])
    expect(test.rows('SELECT DISTINCT typeof(id) AS type FROM orders_raw')).toEqual([type])
    expect(test.rows('SELECT CAST(id AS TEXT) AS id, _json FROM orders_history')).toEqual([
      { id: '2', _json: '{"id":2,"total":2}' },
    ])
    expectClean(test)
  })

  it.each<[string, (test: TestMirror) => Promise<unknown>, unknown[]]>([
    ['rebuild', (test) => createLongWork(test).rebuild.collection('orders'), LIVE],
    ['forget', (test) => createLongWork(test).forgetting().job(ORDERS, true), []],
  ])('is dropped by %s', async (_command, work, rows) => {
    const test = await scene(left)

    await work(test)

    expect(test.value("SELECT count(*) FROM sqlite_schema WHERE name = 'orders'") ? live(test) : []).toEqual(
      rows,
    )
    expectClean(test)
  })
})
