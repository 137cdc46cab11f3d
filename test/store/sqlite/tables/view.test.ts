import Database from 'better-sqlite3'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { canonicalNumber, isRawNumber } from '../../../../src/json/value.ts'
import type { Column } from '../../../../src/store/columns/column.ts'
import type { ArrayView } from '../../../../src/store/columns/elements.ts'
import type { Leaf } from '../../../../src/store/columns/flatten.ts'
import { sqlitePath } from '../../../../src/store/columns/flatten.ts'
import { makeArrayView } from '../../../../src/store/core/array-views.ts'
import type { ViewedTable } from '../../../../src/store/core/fit.ts'
import { runRule } from '../../../../src/store/sqlite/driver.ts'
import { ALTERATION } from '../../../../src/store/sqlite/tables/alter.ts'
import { items } from '../../../json/arbitrary.ts'
import { elementsOf } from '../../columns/items.ts'
import { leavesOf } from '../../columns/leaves.ts'

const TABLE = { name: 'orders', keyColumns: ['id'] }
const VIEW = { name: 'orders__items', arrayColumn: 'items', sentAt: null }

// SQLite compares names only up to a NUL, so a path cannot distinguish such names; and it reads half of a
// surrogate pair as bytes that are not text.
const tellable = items.filter((item) => !/\\u(0000|d[89a-f])/.test(JSON.stringify(item)))

describe('the view of an array', () => {
  it.each<[string, string[], unknown[], unknown[]?]>([
    ['INTEGER', ['1', '20.0', '2e1', '-0', 'null', 'true', 'false'], [1n, 20n, 20n, 0n, null, 1n, 0n]],
    [
      'INTEGER',
      ['9007199254740993', '9223372036854775807', '-9223372036854775808', '1.5', '1e300'],
      [9007199254740993n, 2n ** 63n - 1n, -(2n ** 63n), null, null],
      [null, null, null, '1.5', '1e300'],
    ],
    [
      'INTEGER',
      [
        '1',
        '"2"',
        '"-0"',
        '"9223372036854775807"',
        '"9223372036854775808"',
        '"x"',
        '""',
        '"2.0"',
        '" 2"',
        '"02"',
        '[1]',
        '{"b":1}',
      ],
      [1n, 2n, 0n, 2n ** 63n - 1n, null, null, null, null, null, null, null, null],
      [null, null, null, null, '9223372036854775808', 'x', '', '2.0', ' 2', '02', '[1]', null],
    ],
    ['REAL', ['1.10', '1', '2e1', '9007199254740994', '-0.0'], [1.1, 1, 20, 9007199254740994, 0]],
    [
      'REAL',
      [
        '0.5',
        '"1.10"',
        '"7"',
        '"-0.25"',
        '"0.00"',
        '"12345.6789000000"',
        '"1e3"',
        '".5"',
        '"5."',
        '"1.5 "',
        '"x"',
        'true',
      ],
      [0.5, 1.1, 7, -0.25, 0, 12345.6789, null, null, null, null, null, null],
      [null, null, null, null, null, null, '1e3', '.5', '5.', '1.5 ', 'x', 'true'],
    ],
    [
      'REAL',
      [
        '0.5',
        '9007199254740993',
        '9223372036854775807',
        '9007199254740994.0',
        '1e-400',
        '0e5',
        '"0.12345678901234567"',
      ],
      [0.5, null, null, null, null, 0, null],
      [
        null,
        '9007199254740993',
        '9223372036854775807',
        '9007199254740994.0',
        '1e-400',
        null,
        '0.12345678901234567',
      ],
    ],
    [
      'TEXT',
      ['"x"', '1.10', '12345678901234567890', '1e400', '-0'],
      ['x', '1.10', '12345678901234567890', '1e400', '-0'],
    ],
    ['TEXT', ['"x"', 'true', '1', 'null'], ['x', null, '1', null], [null, 'true', null, null]],
    ['TEXT', ['"1"', '"true"', '"é\\n\\""', '""', '"[]"'], ['1', 'true', 'é\n"', '', '[]']],
    ['TEXT', ['[1.10,{"b":[]}]', '[]', '"x"'], ['[1.10,{"b":[]}]', '[]', 'x']],
    ['TEXT', ['"x"', '{"b":1}'], ['x', null]],
  ])('gives a column that is %s for %j one storage class', (type, texts, expected, beside) => {
    const array = `[${texts.map((text) => `{"a":${text}}`).join()}]`
    const elements = elementsOf([array])

    expect(elements[0]?.type).toBe(type)
    const rows = rowsOf([array], elements)
    expect(rows.map((row) => row.a)).toEqual(expected)
    expect(rows.map((row) => row.a__text)).toEqual(beside ?? texts.map(() => undefined))
  })

  it('accepts names with quotes and spaces', () => {
    const text = '[{"it\'s":1,"a\\"b":"x","c.d":2.5,"Größe \\\\":true}]'
    const odd = {
      view: { name: `o"__i's`, arrayColumn: `i's "`, sentAt: null },
      table: { name: 'o"', keyColumns: ['a"k', "b'k"] },
    }
    const db = new Database(':memory:')
    db.exec(`CREATE TABLE "o""" ("_organization_id" TEXT, "a""k" TEXT, "b'k" INTEGER, "i's """ TEXT) STRICT`)
    db.prepare('INSERT INTO "o""" VALUES (?, ?, ?, ?)').run('org', 'k', 1n, text)

    makeView(db, odd.table, { ...odd.view, elements: elementsOf([text]) })

    expect(db.prepare(`SELECT * FROM "o""__i's"`).get()).toEqual({
      _organization_id: 'org',
      '_parent_a"k': 'k',
      "_parent_b'k": 1,
      _index: 0,
      "it's": 1,
      'a"b': 'x',
      'c.d': 2.5,
      'Größe \\': 1,
    })
  })

  it('shows every value of every element in the class of its column', () => {
    fc.assert(
      fc.property(fc.array(fc.array(tellable, { maxLength: 4 }), { maxLength: 4 }), (arrays) => {
        const texts = arrays.map((array) => JSON.stringify(array))
        const elements = elementsOf(texts)

        const rows = rowsOf(texts, elements)

        expect(rows).toHaveLength(arrays.flat().length)
        for (const { _parent_id: id, _index: index, ...fields } of rows)
          expectShown(fields, elements, arrays[Number(id)]?.[Number(index)] ?? {})
      }),
      { numRuns: 500 },
    )
  })
})

function expectShown(
  row: Record<string, unknown>,
  elements: readonly Column[],
  element: Parameters<typeof leavesOf>[0],
): void {
  const values = new Map(leavesOf(element).map(([path, value]) => [sqlitePath(path), value]))
  const mains = elements.filter(({ role }) => role === 'value')
  for (const { name, path, type } of mains) {
    const value = values.get(path) ?? null
    const text = elements.find((one) => one.role === 'text' && one.path === path)
    const isBeside = text !== undefined && row[text.name] !== null
    const [found, as] = isBeside ? [row[text.name], 'TEXT'] : [row[name], type]
    // What one column has the other has not.
    if (isBeside) expect([name, row[name]]).toEqual([name, null])
    expect([name, found]).toEqual([name, value === null ? null : shown(value, as)])
  }
}

function shown(value: Leaf, type: string): unknown {
  if (typeof value === 'boolean') return type === 'INTEGER' ? BigInt(value) : String(value)
  if (Array.isArray(value)) return JSON.stringify(value)
  const text = isRawNumber(value) ? value.rawJSON : String(value)
  if (type === 'INTEGER') return BigInt(canonicalNumber(text))
  return type === 'REAL' ? Number(text) + 0 : text
}

function rowsOf(texts: readonly (string | null)[], elements: readonly Column[]): Record<string, unknown>[] {
  const db = createTable(texts)
  makeView(db, TABLE, { ...VIEW, elements })
  return db
    .prepare<[], Record<string, unknown>>('SELECT * FROM "orders__items" ORDER BY "_parent_id", "_index"')
    .all()
}

function makeView(db: Database.Database, table: ViewedTable, view: ArrayView): void {
  runRule(db, makeArrayView(ALTERATION, table, view))
}

function createTable(texts: readonly (string | null)[]): Database.Database {
  const db = new Database(':memory:').defaultSafeIntegers()
  db.exec(
    'CREATE TABLE "orders" ("_organization_id" TEXT NOT NULL, "id" INTEGER NOT NULL, "items" TEXT) STRICT',
  )
  const insert = db.prepare('INSERT INTO "orders" VALUES (?, ?, ?)')
  for (const [id, text] of texts.entries()) insert.run('org', BigInt(id), text)
  return db
}
