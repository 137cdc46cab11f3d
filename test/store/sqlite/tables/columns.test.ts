import { describe, expect, it } from 'vitest'
import { timeAt } from '../../../helpers/clock.ts'
import { jobOf } from '../../../helpers/jobs.ts'
import { beginTestWalk, openTestMirror } from '../../../helpers/test-mirror.ts'

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
})
