import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { stepLeftovers, stepRetyping } from '../../src/mirror/retype.ts'
import { ACME, GLOBEX, jobOf } from '../helpers/jobs.ts'
import { beginTestWalk, openTestMirror, type Row, type TestMirror } from '../helpers/test-mirror.ts'

const TABLES = ['orders', 'orders_raw', 'orders_history']

const TO_TEXT = { collection: 'orders', keyColumns: ['id'], from: ['INTEGER'], to: ['TEXT'] } as const

/** One step, in a transaction as the mirror makes it. */
function step(test: TestMirror, rows: number): boolean {
  return test.connection.transaction(() => stepRetyping(test.connection, TO_TEXT, rows)).immediate()
}

function stepDown(test: TestMirror, rows: number): boolean {
  return test.connection.transaction(() => stepLeftovers(test.connection, 'orders', rows)).immediate()
}

function idTypes(test: TestMirror): unknown[] {
  return TABLES.map((table) => test.value(`SELECT type FROM pragma_table_info(?) WHERE name = 'id'`, table))
}

/** The rows of the three tables, with their places, keys as text. */
function rowsOf(test: TestMirror): Row[][] {
  return TABLES.map((table) =>
    test
      .rows(`SELECT _rowid_ AS place, * FROM ${table} ORDER BY _rowid_`)
      .map((row) => ({ ...row, id: String(row.id) })),
  )
}

function ours(test: TestMirror): unknown[] {
  return test.rows(`SELECT name FROM sqlite_schema WHERE name LIKE '%\\_new\\_%' ESCAPE '\\'`)
}

/** Eight orders of two organizations, two of them with a history. */
async function scene() {
  const test = openTestMirror()
  const acme = await beginTestWalk(test, jobOf())
  const globex = await beginTestWalk(test, jobOf({}, GLOBEX))
  await acme.saveItems(...[1, 2, 3, 4, 5].map((id) => `{"id":${id},"total":${id},"state":"open"}`))
  await globex.saveItems(...[1, 2, 3].map((id) => `{"id":${id},"total":${id}0,"state":"paid"}`))
  await acme.saveItems('{"id":2,"total":2,"state":"paid"}', '{"id":4,"total":4,"state":"paid"}')
  return { test, acme, globex }
}

describe('a key column that becomes TEXT in steps', () => {
  it('leaves the tables as they are until all rows are copied, and then has every row in its place', async () => {
    const { test } = await scene()
    const before = rowsOf(test)

    const during = []
    while (!step(test, 3)) during.push({ types: idTypes(test), rows: rowsOf(test) })

    expect(during.length).toBeGreaterThan(5)
    for (const { types, rows } of during) {
      expect(types).toEqual(['INTEGER', 'INTEGER', 'INTEGER'])
      expect(rows).toEqual(before)
    }
    expect(idTypes(test)).toEqual(['TEXT', 'TEXT', 'TEXT'])
    expect(rowsOf(test)).toEqual(before)
    expect(test.value('PRAGMA integrity_check')).toBe('ok')
  })

  it('leaves nothing behind', async () => {
    const { test } = await scene()
    while (!step(test, 3));
    const before = rowsOf(test)

    let steps = 1
    while (!stepDown(test, 3)) steps++

    expect(steps).toBeGreaterThan(3)
    expect(ours(test)).toEqual([])
    expect(rowsOf(test)).toEqual(before)
    expect(test.value('PRAGMA integrity_check')).toBe('ok')
  })

  it('carries over whatever changes meanwhile', async () => {
    const change = fc.oneof(
      fc.record({ what: fc.constant('step' as const), rows: fc.integer({ min: 1, max: 6 }) }),
      fc.record({
        what: fc.constantFrom('save' as const, 'remove' as const),
        id: fc.integer({ min: 1, max: 12 }),
      }),
      fc.record({ what: fc.constant('column' as const), id: fc.integer({ min: 1, max: 3 }) }),
    )
    await fc.assert(
      fc.asyncProperty(fc.array(change, { minLength: 5, maxLength: 40 }), async (changes) => {
        const { test, acme } = await scene()
        const other = openTestMirror({ file: test.file })
        const globex = await beginTestWalk(other, jobOf({}, GLOBEX))
        const advance = (rows: number) => {
          const before = rowsOf(test)
          const isDone = step(test, rows)
          expect(rowsOf(test)).toEqual(before)
          return isDone
        }
        let isDone = false

        for (const [number, one] of changes.entries()) {
          if (one.what === 'step') isDone ||= advance(one.rows)
          if (one.what === 'save') await globex.saveItems(`{"id":${one.id},"total":${number}}`)
          if (one.what === 'column') await acme.saveItems(`{"id":${one.id},"column_${one.id}":${number}}`)
          if (one.what === 'remove') {
            for (const table of ['orders', 'orders_raw'])
              other.connection.prepare(`DELETE FROM ${table} WHERE id = ?`).run(one.id)
          }
        }
        while (!isDone) isDone = advance(4)

        expect(idTypes(test)).toEqual(['TEXT', 'TEXT', 'TEXT'])
        expect(test.value('PRAGMA integrity_check')).toBe('ok')
        other.close()
        test.close()
      }),
      { numRuns: 25 },
    )
  })

  it.each([2, 3])(
    'carries over a row that gets another place, as somebody’s SQL may want it: %i',
    async (place) => {
      const { test } = await scene()
      step(test, 3)
      test.connection.exec(`UPDATE orders SET _rowid_ = 100 WHERE _rowid_ = ${place}`)
      const before = rowsOf(test)

      while (!step(test, 1));

      expect(rowsOf(test)).toEqual(before)
      expect(test.value('PRAGMA integrity_check')).toBe('ok')
    },
  )

  it('is at home in a file whose places are given anew', async () => {
    const { test } = await scene()
    step(test, 3)
    test.connection.exec('DELETE FROM orders WHERE _rowid_ IN (2, 6); VACUUM')
    const before = rowsOf(test)

    while (!step(test, 2));

    expect(rowsOf(test)).toEqual(before)
  })

  it('can be made by two processes at once', async () => {
    const { test } = await scene()
    const other = openTestMirror({ file: test.file })
    const before = rowsOf(test)

    let steps = 0
    while (!step(steps % 2 ? test : other, 2)) steps++

    expect(steps).toBeGreaterThan(8)
    expect(idTypes(test)).toEqual(['TEXT', 'TEXT', 'TEXT'])
    expect(rowsOf(test)).toEqual(before)
  })

  it('goes on in the next process where one was killed', async () => {
    const { test } = await scene()
    const before = rowsOf(test)
    for (let count = 0; count < 4; count++) step(test, 2)
    const copied = test.value('SELECT count(*) FROM _new_orders')
    test.close()

    const next = openTestMirror({ file: test.file })
    step(next, 1)

    expect(next.value('SELECT count(*) FROM _new_orders')).toBe(Number(copied))
    while (!step(next, 2));
    expect(rowsOf(next)).toEqual(before)
  })

  it('begins again when a copy is followed by no trigger, whatever it holds', async () => {
    const { test } = await scene()
    const before = rowsOf(test)
    while (!step(test, 3)) if (test.value(`SELECT count(*) FROM orders_history`) === 2) break
    // The highest row id is there, and rows below it are not.
    test.connection.exec('DROP TRIGGER _new_orders_delete; DELETE FROM _new_orders WHERE _rowid_ = 1')

    while (!step(test, 3));

    expect(rowsOf(test)).toEqual(before)
  })

  it.each([
    ['a column', 'ALTER TABLE orders ADD COLUMN mine TEXT'],
    ['an index', 'CREATE INDEX my_late_index ON orders (total)'],
    ['an index that reads oddly', 'CREATE INDEX my_late_index /* (mine) */ ON orders_raw (_changed_at)'],
    ['a trigger', `CREATE TRIGGER my_late AFTER UPDATE ON orders BEGIN SELECT 1; END`],
    ['one index less', 'DROP INDEX my_index'],
  ])('keeps what a user makes in the middle: %s', async (_what, sql) => {
    const { test } = await scene()
    test.connection.exec('CREATE INDEX my_index ON orders (id, state) WHERE total > 1')
    step(test, 3)

    test.connection.exec(sql)
    const schema = () =>
      test.rows(`SELECT name, sql FROM sqlite_schema WHERE name LIKE 'my\\_%' ESCAPE '\\' ORDER BY name`)
    const before = { schema: schema(), rows: rowsOf(test) }
    while (!step(test, 3));
    while (!stepDown(test, 3));

    expect({ schema: schema(), rows: rowsOf(test) }).toEqual(before)
    expect(ours(test)).toEqual([])
    expect(test.value('PRAGMA integrity_check')).toBe('ok')
    expect(
      test.rows(`EXPLAIN QUERY PLAN SELECT * FROM orders WHERE _organization_id = '' AND id = ''`),
    ).toEqual([expect.objectContaining({ detail: expect.stringContaining('USING INDEX') })])
  })

  it('is undone whole when it fails in the middle of the exchange', async () => {
    const { test } = await scene()
    const before = rowsOf(test)
    const { connection } = test
    const failing = connection.transaction(() => {
      while (!stepRetyping(connection, TO_TEXT, 3));
      throw new Error('the disk is full')
    })

    expect(() => failing.immediate()).toThrow('the disk is full')

    expect(idTypes(test)).toEqual(['INTEGER', 'INTEGER', 'INTEGER'])
    expect(rowsOf(test)).toEqual(before)
    expect(connection.prepare('SELECT count(*) FROM orders WHERE id = 2').pluck().get()).toBe(2)
    expect(test.value('PRAGMA integrity_check')).toBe('ok')
  })
})

describe('a copy that nobody goes on with', () => {
  it('is made whole, or taken away, after the next run of the collection', async () => {
    const { test, acme } = await scene()
    step(test, 3)
    const before = rowsOf(test)

    await test.mirror.prune(jobOf())

    expect(ours(test)).toEqual([])
    expect(idTypes(test)).toEqual(['TEXT', 'TEXT', 'TEXT'])
    expect(test.rows(`SELECT type FROM sync_columns WHERE "column" = 'id'`)).toEqual([{ type: 'TEXT' }])
    expect(rowsOf(test)).toEqual(before)
    expect(await acme.saveItems('{"id":2,"total":2,"state":"paid"}')).toMatchObject({
      added: 0,
      changed: 0,
    })
  })

  it('is in nobody else’s way', async () => {
    const { test, globex } = await scene()
    step(test, 3)

    await globex.saveItems('{"id":9,"total":0.5,"more":"x"}', '{"id":1,"total":7}')

    expect(idTypes(test)).toEqual(['INTEGER', 'INTEGER', 'INTEGER'])
    expect(test.rows('SELECT DISTINCT collection FROM sync_columns')).toEqual([{ collection: 'orders' }])
    expect(
      test.rows('SELECT id, total, more FROM orders WHERE _organization_id = ? ORDER BY id', GLOBEX.id),
    ).toEqual([
      { id: 1, total: 7, more: null },
      { id: 2, total: 20, more: null },
      { id: 3, total: 30, more: null },
      { id: 9, total: 0.5, more: 'x' },
    ])
    expect(test.value('PRAGMA integrity_check')).toBe('ok')
  })
})

describe('a page with a text key among a thousand rows', () => {
  it('is saved in one transaction, after those that make room for it', async () => {
    const test = openTestMirror()
    const { saveItems } = await beginTestWalk(test, jobOf())
    await saveItems(...Array.from({ length: 1000 }, (_, id) => `{"id":${id},"a":1}`))

    const saved = await saveItems('{"id":7,"a":2}', '{"id":"x-7","a":3}')

    expect(saved).toMatchObject({ added: 1, changed: 1, rejected: 0 })
    expect(test.value('SELECT count(*) FROM orders')).toBe(1001)
    expect(test.rows(`SELECT id, a FROM orders WHERE a > 1 ORDER BY a`)).toEqual([
      { id: '7', a: 2 },
      { id: 'x-7', a: 3 },
    ])
    expect(test.value('SELECT count(*) FROM sync_pages')).toBe(2)
    expect(test.value('SELECT rows FROM sync_jobs WHERE organization_id = ?', ACME.id)).toBe(1001)
  })
})
