import { describe, expect, it } from 'vitest'
import { MirrorError } from '../../../../src/errors.ts'
import { ACME, GLOBEX, jobOf } from '../../../helpers/jobs.ts'
import {
  beginTestWalk,
  dump,
  openTestMirror,
  type Row,
  type TestMirror,
} from '../../../helpers/test-mirror.ts'

const TABLES = ['orders', 'orders_raw', 'orders_history']

/** The rows of the three tables with their row ids, keys and totals as text. */
function rowsOf(test: TestMirror): Row[][] {
  return TABLES.map((table) =>
    test
      .rows(`SELECT _rowid_ AS place, * FROM ${table} ORDER BY _rowid_`)
      .map((row) => ({ ...row, id: String(row.id) })),
  )
}

function typesOf(test: TestMirror): unknown[] {
  return test.rows(`SELECT name, type FROM pragma_table_info('orders') WHERE name IN ('id', 'total')`)
}

const LEFT_OVER = `SELECT name FROM sqlite_schema WHERE name LIKE '%\\_new\\_%' ESCAPE '\\'`

/** Everything that a user may attach to a table; each trigger logs that it fired. */
const OF_A_USER = `
  ALTER TABLE orders ADD COLUMN my_rank INT DEFAULT 7 CHECK (my_rank > 0);
  ALTER TABLE orders ADD COLUMN my_double TEXT GENERATED ALWAYS AS (total || total) VIRTUAL;
  CREATE VIEW my_totals AS SELECT id, total FROM orders;
  CREATE VIEW my_versions AS SELECT id, _json FROM orders_history JOIN my_totals USING (id);
  CREATE INDEX my_partial ON orders (total) WHERE state = 'paid';
  CREATE INDEX my_expression ON ORDERS (lower(state) || ' (INTEGER)', id DESC);
  CREATE UNIQUE INDEX "my ""unique""" ON orders_raw (_organization_id, id, _json);
  CREATE TABLE my_log (what TEXT, id);
  CREATE TRIGGER my_insert AFTER INSERT ON ORDERS BEGIN INSERT INTO my_log VALUES ('insert', new.id); END;
  CREATE TRIGGER my_update AFTER UPDATE OF total ON "orders" BEGIN INSERT INTO my_log VALUES ('update', new.id); END;
  CREATE TRIGGER my_delete BEFORE DELETE ON orders BEGIN INSERT INTO my_log VALUES ('delete', old.id); END;
  CREATE TABLE my_notes (
    organization TEXT,
    id INTEGER,
    note TEXT,
    FOREIGN KEY (organization, id) REFERENCES orders (_organization_id, id) ON DELETE CASCADE ON UPDATE CASCADE
  );
  CREATE TRIGGER my_notes_insert AFTER INSERT ON my_notes BEGIN UPDATE orders SET my_rank = 9 WHERE id = new.id; END;
  INSERT INTO my_notes VALUES ('${ACME.id}', 1, 'ours'), ('${ACME.id}', 2, 'gone one day');
  DELETE FROM my_log;
`

async function scene() {
  const test = openTestMirror()
  const acme = await beginTestWalk(test, jobOf())
  const globex = await beginTestWalk(test, jobOf({}, GLOBEX))
  await acme.saveItems(...[1, 2, 3].map((id) => `{"id":${id},"total":${id},"state":"paid"}`))
  await globex.saveItems(...[1, 2].map((id) => `{"id":${id},"total":${id}0,"state":"open"}`))
  await acme.saveItems('{"id":2,"total":22,"state":"paid"}')
  test.connection.exec(OF_A_USER)
  return { test, acme }
}

const ofUser = (test: TestMirror) =>
  test.rows(`SELECT type, name, tbl_name, sql FROM sqlite_schema WHERE name LIKE 'my%' ORDER BY name`)

describe.each([
  ['whose column becomes REAL', '{"id":4,"total":0.5,"state":"open"}', ['INTEGER', 'REAL']],
  ['whose key becomes TEXT', '{"id":"x-4","total":5,"state":"open"}', ['TEXT', 'INTEGER']],
  ['of both', '{"id":"x-4","total":0.5,"state":"open"}', ['TEXT', 'REAL']],
])('a table %s', (_what, item, types) => {
  it('keeps every row id, and all objects of users', async () => {
    const { test, acme } = await scene()
    const before = { schema: ofUser(test), rows: rowsOf(test), notes: test.rows('SELECT * FROM my_notes') }

    await acme.saveItems(item)

    expect(typesOf(test).map((row) => (row as Row).type)).toEqual(types)
    expect(ofUser(test)).toEqual(before.schema)
    expect(rowsOf(test).map((rows, index) => rows.slice(0, before.rows[index]?.length))).toEqual(
      before.rows.map((rows) =>
        rows.map((row) =>
          row.my_rank && types[1] === 'REAL'
            ? { ...row, my_double: `${String(row.total)}.0`.repeat(2) }
            : row,
        ),
      ),
    )
    expect(test.rows('SELECT * FROM my_notes')).toEqual(before.notes)
    // Only the added row has fired a trigger.
    expect(test.rows('SELECT what FROM my_log')).toEqual([{ what: 'insert' }])
    expect(test.rows(LEFT_OVER)).toEqual([])
    expect(test.value('PRAGMA integrity_check')).toBe('ok')
    expect(test.rows('PRAGMA foreign_key_check')).toEqual([])
  })

  it('is as it was if the change fails', async () => {
    const { test, acme } = await scene()
    // This unique index then has the same value for all rows, so it cannot be recreated.
    test.connection.exec(`
      CREATE UNIQUE INDEX my_types ON orders (
        _organization_id,
        CASE WHEN typeof(id) = 'text' OR typeof(total) = 'real' THEN 1 ELSE id END
      )
    `)
    const before = dump(test)

    const saving = acme.saveItems(item)

    await expect(saving).rejects.toThrow(MirrorError)
    await expect(saving).rejects.toThrow(/my_types/)

    expect(dump(test)).toEqual(before)
    expect(test.value('PRAGMA integrity_check')).toBe('ok')
  })

  it('leaves the connection as it was', async () => {
    const { test, acme } = await scene()
    const pragmas = () =>
      ['foreign_keys', 'legacy_alter_table'].map((name) => test.connection.pragma(name, { simple: true }))
    const before = pragmas()

    await acme.saveItems(item)

    expect(pragmas()).toEqual(before)
    expect(before).toEqual([1, 0])
  })
})

/** Where the table begins in the file: a copy begins elsewhere. */
function places(test: TestMirror): Row[] {
  return test.rows(`SELECT name, rootpage FROM sqlite_schema WHERE name = 'orders'`)
}

describe('the columns of a page', () => {
  it('are added to the table itself', async () => {
    const { test, acme } = await scene()
    const before = places(test)

    await acme.saveItems('{"id":4,"a":1,"b":0.5,"c":"x"}')

    expect(places(test)).toEqual(before)
    expect(test.rows('SELECT a, b, c FROM orders WHERE id IN (3, 4)')).toEqual([
      { a: null, b: null, c: null },
      { a: 1, b: 0.5, c: 'x' },
    ])
  })
})

describe('a table whose declaration a user changed', () => {
  it.each([
    [
      'a column of another name and back',
      'RENAME COLUMN total TO t; ALTER TABLE orders RENAME COLUMN t TO total',
    ],
    [
      'a comment, and a text, that look like the column',
      `ADD COLUMN mine TEXT DEFAULT 'x' /*, "total" INTEGER */`,
    ],
    ['a default that looks like the column', `ADD COLUMN mine TEXT DEFAULT ', "total" INTEGER'`],
  ])('is changed like any other: %s', async (_what, sql) => {
    const test = openTestMirror()
    const { saveItems } = await beginTestWalk(test, jobOf())
    await saveItems('{"id":1,"total":1,"state":"paid"}')
    test.connection.exec(`ALTER TABLE orders ${sql}`)

    await saveItems('{"id":2,"total":0.5}')

    expect(test.rows('SELECT typeof(total) AS type FROM orders WHERE id = 2')).toEqual([{ type: 'real' }])
    expect(test.value('PRAGMA integrity_check')).toBe('ok')
  })
})
