import { describe, expect, it } from 'vitest'
import { ACME, jobOf } from '../../../helpers/jobs.ts'
import { OUTSIDE_READERS, type OutsideReader } from '../../../helpers/outside-readers.ts'
import { beginTestWalk, openTestMirror, type TestMirror } from '../../../helpers/test-mirror.ts'

/** All who may read the views: our SQLite, and those of others. */
function askers(test: TestMirror): Pick<OutsideReader, 'name' | 'read'>[] {
  return [{ name: 'ours', read: (_file, sql) => test.rows(sql) }, ...OUTSIDE_READERS]
}

describe('the view of an array of objects', () => {
  it('has a row for each element, with the key of its parent', async () => {
    const test = openTestMirror()
    const { saveItems } = await beginTestWalk(test, jobOf({ key: ['order', 'part.no'] }))

    await saveItems(
      '{"order":1,"part":{"no":"a"},"lines":[{"sku":"s1","price":{"net":1.5}},{"sku":"s2"}]}',
      '{"order":2,"part":{"no":"b"},"lines":[]}',
      '{"order":3,"part":{"no":"c"},"lines":null}',
      '{"order":4,"part":{"no":"d"}}',
    )

    for (const { read } of askers(test)) {
      expect(read(test.file, 'SELECT * FROM orders__lines')).toEqual([
        {
          _organization_id: ACME.id,
          _parent_order: 1,
          _parent_part__no: 'a',
          _index: 0,
          sku: 's1',
          price__net: 1.5,
        },
        {
          _organization_id: ACME.id,
          _parent_order: 1,
          _parent_part__no: 'a',
          _index: 1,
          sku: 's2',
          price__net: null,
        },
      ])
    }
  })

  it('gets the columns of later elements, and wider ones', async () => {
    const test = openTestMirror()
    const { saveItems } = await beginTestWalk(test, jobOf())
    await saveItems('{"id":1,"lines":[{"count":1,"code":7}]}')
    test.connection.exec(
      'CREATE VIEW my_counts AS SELECT _parent_id, count FROM orders__lines WHERE code IS NULL',
    )

    const { notices } = await saveItems(
      '{"id":2,"lines":[{"count":2.5,"code":"x","gift":true},{"code":"8"}]}',
    )

    for (const { read } of askers(test)) {
      expect(
        read(test.file, 'SELECT _parent_id, count, code, code__text AS beside, gift FROM orders__lines'),
      ).toEqual([
        { _parent_id: 1, count: 1, code: 7, beside: null, gift: null },
        { _parent_id: 2, count: 2.5, code: null, beside: 'x', gift: 1 },
        { _parent_id: 2, count: null, code: 8, beside: null, gift: null },
      ])
      expect(read(test.file, 'SELECT count FROM my_counts')).toEqual([{ count: 2.5 }])
    }
    expect(notices).toEqual([
      {
        level: 'warn',
        message:
          'orders__lines: column code is INTEGER, and a value came that does not fit that type: such values are stored as text in column code__text',
      },
    ])
  })

  it('is created for an array in a text column beside a number', async () => {
    const test = openTestMirror()
    const { saveItems } = await beginTestWalk(test, jobOf())
    await saveItems('{"id":1,"lines":0}')

    await saveItems('{"id":2,"lines":[{"sku":"a"}]}')

    expect(test.rows('SELECT _parent_id, sku FROM orders__lines__text')).toEqual([
      { _parent_id: 2, sku: 'a' },
    ])
  })

  it.each([
    ['before any list', ['{"id":2,"lines":"[{\\"sku\\":\\"no\\"}]"}', '{"id":1,"lines":[{"sku":"a"}]}']],
    ['after one', ['{"id":1,"lines":[{"sku":"a"}]}', '{"id":2,"lines":" [{\\"sku\\":\\"no\\"}]"}']],
    [
      'beside numbers',
      ['{"id":1,"lines":7}', '{"id":1,"lines":[{"sku":"a"}]}', '{"id":2,"lines":"[{\\"sku\\":\\"no\\"}]"}'],
    ],
  ])('has no element of a text that reads like a list, %s', async (_when, pages) => {
    const test = openTestMirror()
    const { saveItems } = await beginTestWalk(test, jobOf())

    for (const page of pages) await saveItems(page)
    await saveItems('{"id":3,"lines":[{"sku":"b"}]}')

    const view = test.value(
      `SELECT name FROM sqlite_schema WHERE type = 'view' AND name LIKE 'orders\\_\\_%' ESCAPE '\\'`,
    )
    for (const { read } of askers(test)) {
      expect(read(test.file, `SELECT _parent_id, sku FROM "${String(view)}" ORDER BY 1`)).toEqual([
        { _parent_id: 1, sku: 'a' },
        { _parent_id: 3, sku: 'b' },
      ])
    }
  })

  it('reads the items only once such a text came', async () => {
    const test = openTestMirror()
    const { saveItems } = await beginTestWalk(test, jobOf())
    const view = () => String(test.value("SELECT sql FROM sqlite_schema WHERE name = 'orders__lines'"))

    await saveItems('{"id":1,"lines":[{"sku":"a"}],"note":"[x]"}')
    await saveItems('{"id":2,"lines":"none"}')
    const before = view()
    await saveItems('{"id":3,"lines":"[none]"}')

    expect([before, view()].map((sql) => sql.includes('orders_raw'))).toEqual([false, true])
  })

  it.each([
    ['table', 'CREATE TABLE Orders__Lines (mine)'],
    ['view', 'CREATE VIEW orders__lines AS SELECT 1 AS mine'],
  ])('leaves a %s of a user with its name alone, and warns once', async (_kind, sql) => {
    const test = openTestMirror()
    test.connection.exec(sql)
    const { saveItems } = await beginTestWalk(test, jobOf())

    const first = await saveItems('{"id":1,"lines":[{"sku":"s1"}]}')
    const second = await saveItems('{"id":2,"lines":[{"sku":"s2","price":1}]}')

    expect(first.notices).toEqual([{ level: 'warn', message: expect.stringContaining('orders__lines') }])
    expect(second.notices).toEqual([])
    expect(test.rows('SELECT mine FROM orders__lines')).toHaveLength(sql.includes('TABLE') ? 0 : 1)
    expect(test.value('SELECT count(*) FROM orders')).toBe(2)
  })

  it('is not created for an array of scalars', async () => {
    const test = openTestMirror()
    const { saveItems } = await beginTestWalk(test, jobOf())

    await saveItems('{"id":1,"tags":["a","b"],"empty":[]}')

    expect(test.rows(`SELECT name FROM sqlite_schema WHERE name LIKE 'orders\\_\\_%' ESCAPE '\\'`)).toEqual(
      [],
    )
    expect(test.rows('SELECT tags, empty FROM orders')).toEqual([{ tags: '["a","b"]', empty: '[]' }])
  })
})
