import { describe, expect, it } from 'vitest'
import { timeAt } from '../../../helpers/clock.ts'
import { jobOf } from '../../../helpers/jobs.ts'
import { OUTSIDE_READERS } from '../../../helpers/outside-readers.ts'
import { beginTestWalk, openTestMirror } from '../../../helpers/test-mirror.ts'

const TYPES = `SELECT name, type FROM pragma_table_info('orders') WHERE name NOT LIKE '\\_%' ESCAPE '\\'`

describe('the columns of a collection', () => {
  it('are added when their fields come, in the middle of a page too', async () => {
    const test = openTestMirror()
    const { saveItems } = await beginTestWalk(test, jobOf())

    await saveItems(
      '{"id":1,"total":20,"paid":null}',
      '{"id":2,"total":30,"paid":true,"customer":{"email":"a@example.com"}}',
      '{"id":3,"total":40,"paid":false}',
    )

    expect(test.rows('SELECT id, total, paid, customer__email FROM orders')).toEqual([
      { id: 1, total: 20, paid: null, customer__email: null },
      { id: 2, total: 30, paid: 1, customer__email: 'a@example.com' },
      { id: 3, total: 40, paid: 0, customer__email: null },
    ])
  })

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

  it('keep whole numbers of 64 bits exact, and longer ones as text', async () => {
    const test = openTestMirror()
    const { saveItems } = await beginTestWalk(test, jobOf())

    await saveItems('{"id":1,"a":9223372036854775807,"b":12345678901234567890,"c":1e400}')

    expect(test.rows('SELECT CAST(a AS TEXT) AS a, b, c FROM orders')).toEqual([
      { a: '9223372036854775807', b: '12345678901234567890', c: '1e400' },
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
    return { test, saved, saveItems }
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

  it('does so without a write to the old rows', async () => {
    const test = openTestMirror()
    const { saveItems } = await beginTestWalk(test, jobOf())
    await saveItems('{"id":1,"total":1}', '{"id":2,"total":2}')
    test.connection.exec(`
      CREATE TABLE writes (id INTEGER);
      CREATE TRIGGER watch AFTER UPDATE ON orders BEGIN INSERT INTO writes VALUES (new.id); END;
    `)

    await saveItems('{"id":3,"total":0.5}')

    expect(test.rows('SELECT * FROM writes')).toEqual([])
  })

  it('leaves a column of a user alone', async () => {
    const test = openTestMirror()
    const { saveItems } = await beginTestWalk(test, jobOf())
    await saveItems('{"id":1,"total":1}')
    test.connection.exec("ALTER TABLE orders ADD COLUMN mine TEXT; UPDATE orders SET mine = 'kept'")

    await saveItems('{"id":2,"total":0.5,"later":"z"}')

    expect(test.rows('SELECT id, total, typeof(total) AS type, mine, later FROM orders')).toEqual([
      { id: 1, total: 1, type: 'real', mine: 'kept', later: null },
      { id: 2, total: 0.5, type: 'real', mine: null, later: 'z' },
    ])
    expect(test.value('PRAGMA integrity_check')).toBe('ok')
  })

  it('can be written and searched like any other afterwards', async () => {
    const { test, saveItems } = await widened()
    test.connection.exec('CREATE INDEX by_total ON orders (total)')

    await saveItems('{"id":2,"total":-8}', '{"id":101,"total":3,"extra":true}')

    const found = test.rows(
      'SELECT id FROM orders WHERE total IN (-8.0, 3, 9007199254740992.0) ORDER BY total',
    )
    expect(found.map(({ id }) => id)).toEqual([2, 101, 4])
    expect(test.rows(`SELECT typeof(total) AS type FROM orders WHERE id = 101`)).toEqual([{ type: 'real' }])
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

  it('stays as it is if a stored value would be rounded', async () => {
    const test = openTestMirror()
    const { saveItems } = await beginTestWalk(test, jobOf())
    await saveItems('{"id":1,"total":9007199254740993}')

    await saveItems('{"id":2,"total":0.5}')

    expect(test.rows('SELECT CAST(total AS TEXT) AS total, total__text FROM orders')).toEqual([
      { total: '9007199254740993', total__text: null },
      { total: null, total__text: '0.5' },
    ])
  })
})

describe('a collection with more fields than a table has columns', () => {
  it('keeps the others in _json, and says so once', async () => {
    const test = openTestMirror()
    const { saveItems } = await beginTestWalk(test, jobOf())
    const fields = Array.from({ length: 600 }, (_, number) => `"f${number}":${number}`).join(',')

    const first = await saveItems(`{"id":1,${fields}}`)
    const second = await saveItems(`{"id":2,${fields}}`, '{"id":3,"another":1}')

    expect(first.notices).toEqual([
      { level: 'warn', message: expect.stringMatching(/500 discovered columns/) },
    ])
    expect(second.notices).toEqual([])
    expect(test.rows(TYPES)).toHaveLength(500)
    expect(test.value(`SELECT _json ->> '$.f599' FROM orders_raw WHERE id = 2`)).toBe(599)
  })
})
