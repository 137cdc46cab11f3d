import { describe, expect, it } from 'vitest'
import { ACME, jobOf } from '../../../helpers/jobs.ts'
import { OUTSIDE_READERS } from '../../../helpers/outside-readers.ts'
import { openTestMirror } from '../../../helpers/test-mirror.ts'
import { begin } from '../../stage.ts'

// What the columns of the views show: test/store/contract-columns.ts.

it.each(OUTSIDE_READERS)('the mirror is sound for $name, which reads its views', async ({ read }) => {
  const test = openTestMirror()
  const { page } = await begin(test)
  for (const net of [1, 1.5])
    await page('{"no":"key"}', `{"id":1,"lines":[{"sku":"s","price":{"net":${net}}},{"sku":null}]}`)

  expect(read(test.file, 'PRAGMA integrity_check')).toEqual([{ integrity_check: 'ok' }])
  for (const view of ['orders__lines', 'orders_changes', 'orders_versions', 'sync_status']) {
    const rows = read(test.file, `SELECT * FROM ${view} ORDER BY 1, 2, 3`)
    expect(rows.length).toBeGreaterThan(0)
    expect(rows).toEqual(test.rows(`SELECT * FROM ${view} ORDER BY 1, 2, 3`))
  }
})

describe('the view of an array of objects', () => {
  it('has a row for each element, with the key of its parent', async () => {
    const test = openTestMirror()
    const { page } = await begin(test, jobOf({ key: ['order', 'part.no'] }))

    await page(
      '{"order":1,"part":{"no":"a"},"lines":[{"sku":"s1","price":{"net":1.5}},{"sku":"s2"}]}',
      '{"order":2,"part":{"no":"b"},"lines":[]}',
      '{"order":3,"part":{"no":"c"},"lines":null}',
      '{"order":4,"part":{"no":"d"}}',
    )

    const parent = { _organization_id: ACME.id, _parent_order: 1, _parent_part__no: 'a' }
    expect(test.rows('SELECT * FROM orders__lines')).toEqual([
      { ...parent, _index: 0, sku: 's1', price__net: 1.5 },
      { ...parent, _index: 1, sku: 's2', price__net: null },
    ])
  })

  it('is there for arrays that stand beside a number, and for no array of scalars', async () => {
    const test = openTestMirror()
    const { page } = await begin(test)
    await page('{"id":1,"lines":0,"tags":["a","b"]}')

    await page('{"id":2,"lines":[{"sku":"a"}],"tags":[1]}')

    expect(test.rows('SELECT _parent_id, sku FROM orders__lines__text')).toEqual([
      { _parent_id: 2, sku: 'a' },
    ])
    const views = "SELECT name FROM sqlite_schema WHERE name LIKE 'orders@_@_%' ESCAPE '@'"
    expect(test.rows(views)).toEqual([{ name: 'orders__lines__text' }])
  })

  it.each([
    ['table', 'CREATE TABLE Orders__Lines (mine)'],
    ['view', 'CREATE VIEW orders__lines AS SELECT 1 AS mine'],
  ])('takes another name where a user has a %s of its own', async (_kind, sql) => {
    const test = openTestMirror()
    test.connection.exec(sql)
    const { page } = await begin(test)

    await page('{"id":1,"lines":[{"sku":"s1"}]}')
    await page('{"id":2,"lines":[{"sku":"s2","price":1}]}')

    expect(test.rows('SELECT mine FROM orders__lines')).toHaveLength(sql.includes('TABLE') ? 0 : 1)
    expect(test.rows('SELECT sku, price FROM orders__lines_2')).toEqual([
      { sku: 's1', price: null },
      { sku: 's2', price: 1 },
    ])
  })
})
