import { describe, expect, it } from 'vitest'
import { timeAt } from '../../../helpers/clock.ts'
import { jobOf } from '../../../helpers/jobs.ts'
import { beginTestWalk, openTestMirror } from '../../../helpers/test-mirror.ts'

const TYPES = `SELECT name, type FROM pragma_table_info('orders') WHERE name NOT LIKE '\\_%' ESCAPE '\\'`

describe('the columns of a collection', () => {
  it('are listed with path, type and times', async () => {
    const test = openTestMirror()
    const { saveItems } = await beginTestWalk(test, jobOf())
    await saveItems('{"id":1,"total":20,"a.b":"x"}')
    test.clock.advance(1000)
    await saveItems('{"id":2,"total":20.5,"customer":{"email":"a@example.com"}}')
    test.clock.advance(1000)

    await saveItems('{"id":3,"total":"free"}')

    const columns = test.rows(`
      SELECT "column", path, type, first_seen_at, last_changed_at
      FROM sync_columns
      WHERE collection = 'orders'
    `)
    const [first, second, third] = [timeAt(0), timeAt(1000), timeAt(2000)]
    expect(columns.map((row) => Object.values(row))).toEqual([
      ['id', '$.id', 'INTEGER', first, first],
      ['total', '$.total', 'REAL', first, second],
      ['a.b', '$."a.b"', 'TEXT', first, first],
      ['customer__email', '$.customer.email', 'TEXT', second, second],
      ['total__text', '$.total', 'TEXT', third, third],
    ])
  })

  it('are known to a mirror that is opened later', async () => {
    const before = openTestMirror()
    await (await beginTestWalk(before, jobOf())).saveItems('{"id":1,"total":20,"lines":[{"sku":"a"}]}')
    before.close()
    const test = openTestMirror({ file: before.file, clock: before.clock })
    const { saveItems } = await beginTestWalk(test, jobOf())

    const saved = await saveItems('{"id":2,"total":30,"lines":[{"sku":"b"}],"note":"new"}')

    expect(saved.notices).toEqual([])
    expect(test.rows(TYPES)).toEqual([
      { name: 'id', type: 'INTEGER' },
      { name: 'total', type: 'INTEGER' },
      { name: 'lines', type: 'TEXT' },
      { name: 'note', type: 'TEXT' },
    ])
    expect(test.rows('SELECT _parent_id, sku FROM orders__lines')).toEqual([
      { _parent_id: 1, sku: 'a' },
      { _parent_id: 2, sku: 'b' },
    ])
  })
})
