import { describe, expect, it } from 'vitest'
import { timeAt } from '../../../helpers/clock.ts'
import { jobOf } from '../../../helpers/jobs.ts'
import { OUTSIDE_READERS } from '../../../helpers/outside-readers.ts'
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

  it('get a text column for values that do not fit, with a warning', async () => {
    const test = openTestMirror()
    const { saveItems } = await beginTestWalk(test, jobOf())
    await saveItems('{"id":1,"total":20}')

    const saved = await saveItems('{"id":2,"total":"free"}')
    const again = await saveItems('{"id":3,"total":"gift"}', '{"id":2,"total":5}')

    expect(saved.notices).toEqual([
      { level: 'warn', message: expect.stringMatching(/^column total is INTEGER.*total__text/) },
    ])
    expect(again.notices).toEqual([])
    expect(test.rows('SELECT id, total, total__text FROM orders')).toEqual([
      { id: 1, total: 20, total__text: null },
      { id: 2, total: 5, total__text: null },
      { id: 3, total: null, total__text: 'gift' },
    ])
  })
})

describe('an INTEGER column that meets a fraction', () => {
  const WHOLE = [
    '0',
    '-7',
    '140737488355329',
    '9007199254740992',
    '-9007199254740991',
    '-9223372036854775808',
  ]

  async function widened() {
    const test = openTestMirror()
    const { saveItems } = await beginTestWalk(test, jobOf())
    await saveItems(...WHOLE.map((total, index) => `{"id":${index + 1},"total":${total},"note":"n"}`))
    const saved = await saveItems('{"id":100,"total":0.5}')
    return { test, saved }
  }

  it('becomes REAL, for its old rows too, with a notice', async () => {
    const { test, saved } = await widened()

    expect(saved.notices).toEqual([
      { level: 'info', message: expect.stringMatching(/total.*fractions.*REAL/) },
    ])
    expect(test.rows(TYPES)).toContainEqual({ name: 'total', type: 'REAL' })
    expect(test.rows('SELECT DISTINCT typeof(total) AS type FROM orders')).toEqual([{ type: 'real' }])
    expect(test.rows('SELECT total FROM orders').map(({ total }) => total)).toEqual([
      ...WHOLE.map(Number),
      0.5,
    ])
    expect(test.value('PRAGMA integrity_check')).toBe('ok')
  })

  it.each(OUTSIDE_READERS)('is REAL for $name', async ({ read }) => {
    const { test } = await widened()

    expect(read(test.file, 'SELECT DISTINCT typeof(total) AS type FROM orders')).toEqual([{ type: 'real' }])
    expect(read(test.file, 'SELECT total FROM orders WHERE id <= 3')).toEqual([
      { total: 0 },
      { total: -7 },
      { total: 140737488355329 },
    ])
    expect(read(test.file, 'PRAGMA integrity_check')).toEqual([{ integrity_check: 'ok' }])
  })
})
