import { describe, expect, it } from 'vitest'
import { ACME, GLOBEX, jobOf } from '../../../helpers/jobs.ts'
import { createLongWork } from '../../../helpers/long-work.ts'
import { runOnce } from '../../../helpers/run-once.ts'
import { scriptedList, upTo } from '../../../helpers/scripted-list.ts'
import { dump, openTestMirror, type TestMirror } from '../../../helpers/test-mirror.ts'

const rebuilderOf = (...work: Parameters<typeof createLongWork>) => createLongWork(...work).rebuild

const item = (id: number) =>
  `{"id":${id},"a":{"b":${id * 1.5},"c":"c${id}"},"l":[{"s":${id},"t":"x"}],"big":12345678901234567890}`

/** Two organizations, and a history. */
async function createScene(count = 200) {
  const test = openTestMirror()
  await runOnce(
    test,
    scriptedList({ ids: upTo(count), perPage: 100, item: (id) => `{"id":${id},"old":${id}}` }),
  )
  await runOnce(test, scriptedList({ ids: upTo(count), perPage: 100, item }))
  await runOnce(test, scriptedList({ ids: upTo(5), item }), { job: jobOf({}, GLOBEX) })
  return test
}

const typed = (test: TestMirror) => test.rows('SELECT * FROM orders ORDER BY _organization_id, id')

/** All that is committed, except where a table begins in the file, and the number by which the published file is made again. */
const order = ({ schema = [], ...tables }: ReturnType<typeof dump>) => ({
  ...tables,
  schema: schema.map(({ name, sql }) => ({ name, sql })),
  sync_seq: null,
})

const isWrong = ({ a__c: c, a__b: b }: Record<string, unknown>) => c === 'wrong' && b === 0

describe('rebuild', () => {
  it('leaves a correct mirror as it is', async () => {
    const test = await createScene()
    const before = dump(test)

    const rebuilt = await rebuilderOf(test)('orders')

    expect(rebuilt).toEqual({ rows: 205, strays: 0, views: 1, notices: [] })
    expect(order(dump(test))).toEqual(order(before))
  })

  it.each([
    [
      'values that were changed',
      "UPDATE orders SET a__c = 'wrong', a__b = NULL, _first_seen_at = 'x', _changed_at = 'y'",
    ],
    ['rows that are missing', 'DELETE FROM orders WHERE id % 3 = 0'],
    [
      'rows without a raw one',
      "INSERT INTO orders (_organization_id, id, _first_seen_at, _changed_at) VALUES ('o', 7, '', ''), ('p', 9, '', '')",
    ],
    ['a typed table that is gone', 'DROP VIEW orders__l; DROP TABLE orders'],
    ['a view that is gone', 'DROP VIEW orders__l'],
    [
      'a view of another version of this program',
      'DROP VIEW orders__l; CREATE VIEW "orders__l" AS\nSELECT\n  t."_organization_id" AS "_organization_id" FROM "orders" AS t',
    ],
    ['a wrong number of rows', 'UPDATE sync_jobs SET rows = 7'],
  ])('mends %s', async (_, damage) => {
    const test = await createScene()
    const schema = "SELECT name, sql FROM sqlite_schema WHERE name LIKE 'orders%' ORDER BY name"
    const items = 'SELECT * FROM orders__l ORDER BY 1, 2'
    const look = () => [
      typed(test),
      test.rows(items),
      test.rows('SELECT organization, rows FROM sync_status'),
    ]
    const [before, names] = [look(), test.rows(schema).map(({ name }) => name)]
    test.connection.exec(damage)

    const { strays } = await rebuilderOf(test)('orders')

    expect(look()).toEqual(before)
    expect(test.rows(schema).map(({ name }) => name)).toEqual(names)
    expect(strays).toBe(damage.startsWith('INSERT') ? 2 : 0)
    expect(test.value('PRAGMA integrity_check')).toBe('ok')
  })

  it('moves a value from NAME__text that fits its column now, and keeps names and types', async () => {
    const test = openTestMirror()
    const texts = ['{"id":1,"n":1}', '{"id":2,"n":"two"}', '{"id":3,"n":[3]}']
    await runOnce(test, scriptedList({ ids: [1, 2, 3], item: (id) => texts[id - 1] ?? '' }))
    const columns = () => test.rows('SELECT "column", path, type, role FROM sync_columns')
    const before = columns()
    // As an older version may have left it.
    test.connection.exec("UPDATE orders SET n = NULL, n__text = '1' WHERE id = 1")

    await rebuilderOf(test)('orders')

    expect(test.rows('SELECT id, n, n__text FROM orders')).toEqual([
      { id: 1, n: 1, n__text: null },
      { id: 2, n: null, n__text: 'two' },
      { id: 3, n: null, n__text: '[3]' },
    ])
    expect(columns()).toEqual(before)
  })

  it('finds the rows of keys that a double would round', async () => {
    const test = openTestMirror()
    const ids = ['9007199254740992', '9007199254740993']
    await runOnce(test, scriptedList({ ids: [0, 1], item: (id) => `{"id":${ids[id]},"n":${id}}` }))
    test.connection.exec('UPDATE orders SET n = 9')

    const { strays } = await rebuilderOf(test)('orders')

    expect(strays).toBe(0)
    expect(test.rows('SELECT CAST(id AS TEXT) AS id, n FROM orders ORDER BY n')).toEqual(
      ids.map((id, n) => ({ id, n })),
    )
  })

  it('adds a column for a field without one', async () => {
    const test = await createScene(3)
    test.connection.exec(
      `UPDATE orders_raw SET _json = json_insert(_json, '$.late', 7, '$.m', json('[{"z":1}]')) WHERE id = 2`,
    )

    await rebuilderOf(test)('orders')

    expect(test.rows('SELECT late FROM orders WHERE _organization_id = ?', ACME.id)).toEqual([
      { late: null },
      { late: 7 },
      { late: null },
    ])
    expect(test.rows('SELECT _parent_id, z FROM orders__m')).toEqual([
      { _parent_id: 2, z: 1 },
      { _parent_id: 2, z: 1 },
    ])
  })

  it('that is stopped leaves whole rows, and the next one does the rest', async () => {
    const test = await createScene(600)
    const before = typed(test)
    test.connection.exec("UPDATE orders SET a__c = 'wrong', a__b = 0")

    await expect(rebuilderOf(test, (stop) => stop.abort())('orders')).rejects.toThrow(/does the rest/)
    const half = typed(test)
    await rebuilderOf(test)('orders')

    expect(half.some(isWrong)).toBe(true)
    expect(half.filter((row) => !isWrong(row)).length).toBeGreaterThan(50)
    expect(half.filter((row) => !isWrong(row))).toEqual(before.filter((row, at) => !isWrong(half[at] ?? row)))
    expect(typed(test)).toEqual(before)
  })

  it('continues beside a sync with new rows and a key column that becomes TEXT', async () => {
    const test = await createScene(600)
    const other = openTestMirror({ file: test.file })
    const texts = ['{"id":1,"a":{"c":"new"}}', '{"id":"X9"}']
    let isSynced = false
    const beside = async () => {
      if (isSynced) return
      isSynced = true
      await runOnce(other, scriptedList({ ids: [1, 2], item: (id) => texts[id - 1] ?? '' }))
    }

    await rebuilderOf(test, beside)('orders')

    expect(isSynced).toBe(true)
    const same = `
      SELECT count(*) FROM orders JOIN orders_raw USING (_organization_id, id, _changed_at)
      WHERE a__c IS _json ->> '$.a.c' AND big IS _json -> '$.big'
    `
    expect(test.value(same)).toBe(606)
    expect(test.value('SELECT count(*) FROM orders')).toBe(606)
    expect(
      test.rows("SELECT id, a__c FROM orders WHERE id IN ('1', 'X9') AND _organization_id = ?", ACME.id),
    ).toEqual([
      { id: '1', a__c: 'new' },
      { id: 'X9', a__c: null },
    ])
  })

  it('is refused without raw rows', async () => {
    const test = await createScene(3)
    test.connection.exec('DROP TABLE orders_raw')

    await expect(rebuilderOf(test)('orders')).rejects.toThrow(/no table orders_raw/)
    expect(typed(test)).toHaveLength(8)
  })
})
