import { describe, expect, it } from 'vitest'
import { ACME, GLOBEX, jobOf } from '../../../helpers/jobs.ts'
import { OUTSIDE_READERS } from '../../../helpers/outside-readers.ts'
import { beginTestWalk, openTestMirror, type TestMirror } from '../../../helpers/test-mirror.ts'

const TABLES = ['orders', 'orders_raw', 'orders_history']

function keyType(test: TestMirror, column = 'id'): unknown[] {
  return TABLES.map((table) =>
    test.value('SELECT type FROM pragma_table_info(?) WHERE name = ?', table, column),
  )
}

describe('the key of an item', () => {
  it.each<[string, string[], string, Record<string, unknown>]>([
    ['a number', ['id'], '{"id":7}', { id: 7 }],
    ['a whole number, however it is written', ['id'], '{"id":7e0}', { id: 7 }],
    ['a text', ['id'], '{"id":"o-7"}', { id: 'o-7' }],
    ['a text that looks like a number', ['id'], '{"id":"007"}', { id: '007' }],
    ['a fraction', ['id'], '{"id":7.50}', { id: '7.5' }],
    ['20 digits', ['id'], '{"id":12345678901234567890}', { id: '12345678901234567890' }],
    ['a path', ['customer.id'], '{"customer":{"id":7}}', { customer__id: 7 }],
    ['two fields', ['order', 'line'], '{"order":7,"line":"a"}', { order: 7, line: 'a' }],
    ['a name that is ours', ['_id'], '{"_id":7}', { field_id: 7 }],
  ])('is in all three tables: %s', async (_what, key, text, columns) => {
    const test = openTestMirror()
    const { saveItems } = await beginTestWalk(test, jobOf({ key }))
    await saveItems(text)

    await saveItems(text.replace('}', ',"changed":true}').replace('},"changed":true}', '}}'))
    await saveItems(`${text.slice(0, -1)},"changed":1}`)

    for (const table of TABLES) {
      expect(test.rows(`SELECT * FROM ${table}`).at(-1)).toMatchObject({
        _organization_id: ACME.id,
        ...columns,
      })
    }
    expect(test.value('SELECT count(*) FROM orders')).toBe(1)
  })

  it('is the same as a number and as a text', async () => {
    const test = openTestMirror()
    const { saveItems } = await beginTestWalk(test, jobOf())
    await saveItems('{"id":1,"a":1}')

    const saved = await saveItems('{"id":"1","a":2}')

    expect(saved).toMatchObject({ added: 0, changed: 1 })
    expect(test.rows('SELECT id, a FROM orders')).toEqual([{ id: '1', a: 2 }])
  })

  it('must be the one by which the rows are stored', async () => {
    const test = openTestMirror()
    await (await beginTestWalk(test, jobOf())).saveItems('{"id":1,"number":"a"}')
    test.close()
    const later = openTestMirror({ file: test.file })
    const { saveItems } = await beginTestWalk(later, jobOf({ key: ['number'] }))

    const saving = saveItems('{"id":1,"number":"a"}')

    await expect(saving).rejects.toMatchObject({ name: 'JobError', code: 'CONFIGURATION' })
    await expect(saving).rejects.toThrow(/keeps orders by the key id,.*says number/)
    expect(later.rows('SELECT id FROM orders')).toEqual([{ id: 1 }])
  })
})

/** Orders of two organizations, with a history and objects of users, when the first text key comes. */
async function retyped() {
  const test = openTestMirror()
  const acme = await beginTestWalk(test, jobOf())
  const globex = await beginTestWalk(test, jobOf({}, GLOBEX))
  await acme.saveItems('{"id":1,"total":1,"lines":[{"sku":"a"}]}', '{"id":2,"total":20}')
  await acme.saveItems('{"id":1,"total":1.5,"lines":[{"sku":"b"}]}')
  await globex.saveItems('{"id":2,"total":99}')
  test.connection.exec(`
    CREATE VIEW my_totals AS SELECT id, total FROM orders;
    CREATE VIEW my_first_versions AS SELECT id, _json ->> '$.total' AS total FROM orders_history;
    CREATE INDEX my_index ON orders (total);
    CREATE TABLE my_log (id);
    CREATE TRIGGER my_trigger AFTER INSERT ON orders_raw BEGIN INSERT INTO my_log VALUES (new.id); END;
  `)
  const saved = await acme.saveItems('{"id":"x-3","total":3}')
  return { test, saved, saveItems: acme.saveItems }
}

describe('a key column of whole numbers that meets a text', () => {
  it('becomes TEXT in all three tables and keeps every row', async () => {
    const { test, saved } = await retyped()

    expect(saved).toMatchObject({ added: 1, changed: 0 })
    expect(keyType(test)).toEqual(['TEXT', 'TEXT', 'TEXT'])
    expect(test.rows('SELECT id, total, lines FROM orders')).toEqual([
      { id: '1', total: 1.5, lines: '[{"sku":"b"}]' },
      { id: '2', total: 20, lines: null },
      { id: '2', total: 99, lines: null },
      { id: 'x-3', total: 3, lines: null },
    ])
    expect(test.rows('SELECT id, _json FROM orders_history')).toEqual([
      { id: '1', _json: '{"id":1,"total":1,"lines":[{"sku":"a"}]}' },
    ])
    expect(test.rows('SELECT id FROM orders_raw ORDER BY rowid').map(({ id }) => id)).toEqual([
      '1',
      '2',
      '2',
      'x-3',
    ])
    expect(test.rows(`SELECT type FROM sync_columns WHERE "column" = 'id'`)).toEqual([{ type: 'TEXT' }])
    expect(test.value('PRAGMA integrity_check')).toBe('ok')
  })

  it('keeps its primary keys, and the indexes of the history', async () => {
    const { test } = await retyped()

    const indexes = test.rows(`
      SELECT tbl_name, name FROM sqlite_schema WHERE type = 'index' AND tbl_name LIKE 'orders%' ORDER BY name
    `)

    expect(indexes.map(({ name }) => name)).toEqual([
      'my_index',
      'orders_history_at_end',
      'orders_history_at_start',
      'orders_history_by_end',
      'orders_history_by_key',
      'orders_history_seq_at_end',
      'orders_history_seq_at_start',
      'orders_raw_at_change',
      'orders_raw_at_start',
      'orders_raw_seq_at_change',
      'orders_raw_seq_at_start',
      'sqlite_autoindex_orders_1',
      'sqlite_autoindex_orders_raw_1',
    ])
  })

  it('finds its old rows by number and by text', async () => {
    const { saveItems } = await retyped()

    const saved = await saveItems('{"id":2,"total":20}', '{"id":"1","total":1.5}')

    expect(saved).toMatchObject({ added: 0, changed: 1 })
  })

  it.each(OUTSIDE_READERS)('is read as text by $name', async ({ read }) => {
    const { test } = await retyped()

    expect(read(test.file, 'SELECT DISTINCT typeof(id) AS type FROM orders')).toEqual([{ type: 'text' }])
    expect(read(test.file, 'SELECT _parent_id, sku FROM orders__lines')).toEqual([
      { _parent_id: '1', sku: 'b' },
    ])
    expect(read(test.file, 'SELECT count(*) AS rows FROM my_totals')).toEqual([{ rows: 4 }])
    expect(read(test.file, 'PRAGMA integrity_check')).toEqual([{ integrity_check: 'ok' }])
  })
})
