import Database from 'better-sqlite3'
import { describe, expect, it } from 'vitest'
import type { Collection } from '../../../../src/sync/types.ts'
import { timeAt } from '../../../helpers/clock.ts'
import { ACME, jobOf } from '../../../helpers/jobs.ts'
import {
  beginTestWalk,
  openTestMirror,
  type TestMirror,
  type TestWalk,
} from '../../../helpers/test-mirror.ts'

const HOUR = 3_600_000

/** A mirror with these texts, each committed on its own page, an hour apart. */
async function saved(
  texts: readonly string[],
  collection: Partial<Collection> = {},
): Promise<TestMirror & TestWalk> {
  const test = openTestMirror()
  const walk = await beginTestWalk(test, jobOf(collection))
  for (const text of texts) {
    await walk.saveItems(text)
    test.clock.advance(HOUR)
  }
  return { ...test, ...walk }
}

/** Logs every later write to a row of the collection. */
function watchWrites({ file, rows }: TestMirror): () => unknown[] {
  const database = new Database(file)
  database.exec('CREATE TABLE writes (what TEXT)')
  for (const table of ['orders', 'orders_raw', 'orders_history']) {
    for (const event of ['INSERT', 'UPDATE', 'DELETE']) {
      const name = `watch_${table}_${event}`
      database.exec(
        `CREATE TRIGGER ${name} AFTER ${event} ON ${table} BEGIN INSERT INTO writes VALUES ('${event} ${table}'); END`,
      )
    }
  }
  database.close()
  return () => rows('SELECT what FROM writes ORDER BY what').map(({ what }) => what)
}

const SENT = '{"id":1,"total":1.10,"customer":{"name":"Ada","age":36}}'

describe('an item that comes again', () => {
  it.each([
    ['just so', SENT],
    ['with other white space', '{ "id": 1,\n"total": 1.10, "customer": {"name": "Ada", "age": 36} }'],
    ['with its fields in another order', '{"customer":{"age":36,"name":"Ada"},"total":1.10,"id":1}'],
    ['with 1.1 for 1.10', '{"id":1,"total":1.1,"customer":{"name":"Ada","age":36}}'],
    ['with 11e-1 for 1.10', '{"id":1,"total":11e-1,"customer":{"name":"Ada","age":36}}'],
    ['with 36.0 for 36', '{"id":1,"total":1.10,"customer":{"name":"Ada","age":36.0}}'],
    ['with a letter escaped', '{"id":1,"total":1.10,"customer":{"name":"\\u0041da","age":36}}'],
  ])('is not written: %s', async (_how, again) => {
    const test = await saved([SENT])
    const before = test.rows('SELECT * FROM orders_raw')
    const writes = watchWrites(test)

    const page = await test.saveItems(again)

    expect(page).toMatchObject({ added: 0, changed: 0 })
    expect(writes()).toEqual([])
    expect(test.rows('SELECT * FROM orders_raw')).toEqual(before)
  })

  it.each([
    ['a value', '{"id":1,"total":1.11,"customer":{"name":"Ada","age":36}}'],
    ['a text for a number', '{"id":1,"total":"1.10","customer":{"name":"Ada","age":36}}'],
    ['a nested value', '{"id":1,"total":1.10,"customer":{"name":"Ada","age":37}}'],
    ['a further field', '{"id":1,"total":1.10,"customer":{"name":"Ada","age":36},"note":null}'],
    ['a field less', '{"id":1,"total":1.10,"customer":{"name":"Ada"}}'],
    ['null for an object', '{"id":1,"total":1.10,"customer":null}'],
  ])('is written once to each table when it differs in %s', async (_what, changed) => {
    const test = await saved([SENT])
    const writes = watchWrites(test)

    const page = await test.saveItems(changed)

    expect(page).toMatchObject({ added: 0, changed: 1 })
    expect(writes()).toEqual(['INSERT orders_history', 'UPDATE orders', 'UPDATE orders_raw'])
  })

  it('keeps the time when it was first seen, and notes when it changed', async () => {
    const test = await saved([SENT, '{"id":1,"total":2}'])

    const own = { _organization_id: ACME.id, _first_seen_at: timeAt(0), _changed_at: timeAt(HOUR) }
    expect(test.rows('SELECT * FROM orders_raw')).toMatchObject([
      { ...own, id: 1, _json: '{"id":1,"total":2}' },
    ])
    expect(test.rows('SELECT * FROM orders')).toEqual([
      { ...own, id: 1, total: 2, customer__name: null, customer__age: null },
    ])
  })

  it('leaves each superseded version in the history, without a gap', async () => {
    const versions = ['{"id":1,"a":1}', '{"id":1,"a":2}', '{"id":1,"a":2.0}', '{"id":1,"a":1}']

    const test = await saved(versions)

    const own = {
      _organization_id: ACME.id,
      id: 1,
      _reason: 'changed',
      _first_seen_at: timeAt(0),
      _changed_fields: '["$.a"]',
    }
    expect(test.rows('SELECT * FROM orders_history')).toMatchObject([
      { ...own, _json: versions[0], _valid_from: timeAt(0), _valid_to: timeAt(HOUR) },
      { ...own, _json: versions[1], _valid_from: timeAt(HOUR), _valid_to: timeAt(3 * HOUR) },
    ])
    expect(test.value('SELECT _changed_at FROM orders')).toBe(timeAt(3 * HOUR))
  })
})

describe('the history', () => {
  it.each<[boolean | number, number]>([
    [true, 1],
    [90 * 24 * HOUR, 1],
    [false, 0],
  ])('set to %s keeps this number of superseded versions: %i', async (history, kept) => {
    const test = await saved(['{"id":1,"a":1}', '{"id":1,"a":2}'], { history })

    expect(test.rows('SELECT * FROM orders_history')).toHaveLength(kept)
    expect(test.value('SELECT a FROM orders')).toBe(2)
  })
})

describe('ignored fields', () => {
  const ignore = ['seen', 'customer.visits']

  it('make no change, and leave the row as it is', async () => {
    const first = '{"id":1,"seen":1,"customer":{"visits":1,"name":"Ada"}}'

    const test = await saved([first, '{"id":1,"seen":2,"customer":{"visits":9,"name":"Ada"}}'], { ignore })

    expect(test.rows('SELECT _json, _changed_at FROM orders_raw')).toEqual([
      { _json: first, _changed_at: timeAt(0) },
    ])
    expect(test.rows('SELECT seen, customer__visits FROM orders')).toEqual([{ seen: 1, customer__visits: 1 }])
    expect(test.rows('SELECT * FROM orders_history')).toMatchObject([])
  })

  it('are written together with a change of another field', async () => {
    const test = await saved(['{"id":1,"seen":1,"a":1}', '{"id":1,"seen":2,"a":2}'], { ignore })

    expect(test.rows('SELECT seen, a FROM orders')).toEqual([{ seen: 2, a: 2 }])
    expect(test.rows('SELECT * FROM orders_history')).toHaveLength(1)
  })
})
