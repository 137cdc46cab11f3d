import Database from 'better-sqlite3'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseExact } from '../../../../src/json/exact.ts'
import { isJsonObject, isRawNumber, type JsonObject, type JsonValue } from '../../../../src/json/value.ts'
import { type Catalog, createCatalog, extendCatalog } from '../../../../src/store/columns/catalog.ts'
import { type Leaf, SQLITE_LIMITS, sqlitePath } from '../../../../src/store/columns/column.ts'
import { hasNumbersAsNames } from '../../../../src/store/columns/row.ts'
import type { ArrayView } from '../../../../src/store/core/known-columns.ts'
import { makeArrayView } from '../../../../src/store/core/views.ts'
import { runRule, SQLITE } from '../../../../src/store/sqlite/driver.ts'
import { ACME, jobOf } from '../../../helpers/jobs.ts'
import { OUTSIDE_READERS, type OutsideReader } from '../../../helpers/outside-readers.ts'
import { openTestMirror, type TestMirror } from '../../../helpers/test-mirror.ts'
import { items } from '../../../json/arbitrary.ts'
import { leavesOf } from '../../columns/items.ts'
import { begin } from '../../stage.ts'

/** All who may read the views: our SQLite, and those of others. */
function askers(test: TestMirror): Pick<OutsideReader, 'name' | 'read'>[] {
  return [{ name: 'ours', read: (_file, sql) => test.rows(sql) }, ...OUTSIDE_READERS]
}

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

  it('has the elements of a list with holes that comes after one, or on one page with it', async () => {
    const texts = ['{"id":1,"lines":[{"sku":"a"}]}', '{"id":2,"lines":{"0":{"sku":"b"},"7":{"sku":"c"}}}']
    for (const pages of [texts.map((text) => [text]), [texts], [texts.toReversed()]]) {
      const test = openTestMirror()
      const open = await begin(test)
      for (const page of pages) await open.page(...page)

      expect(test.rows('SELECT _parent_id, _index, sku FROM orders__lines ORDER BY 1, 2')).toEqual([
        { _parent_id: 1, _index: 0, sku: 'a' },
        { _parent_id: 2, _index: 0, sku: 'b' },
        { _parent_id: 2, _index: 1, sku: 'c' },
      ])
    }
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

const TABLE = createCatalog([], [['id']], SQLITE_LIMITS, 'orders')

// SQLite compares names only up to a NUL, so a path cannot distinguish such names; and it reads half of a
// surrogate pair as bytes that are not text.
const tellable = items.filter((item) => !/\\u(0000|d[89a-f])/.test(JSON.stringify(item)))

describe('the text of a view', () => {
  it.each<[string, string[], unknown[]]>([
    ['INTEGER', ['1', '20.0', '2e1', '-0', 'null', 'true', 'false'], [1n, 20n, 20n, 0n, null, 1n, 0n]],
    [
      'INTEGER',
      ['9007199254740993', '9223372036854775807', '-9223372036854775808', '1e300', '9223372036854775808'],
      [9007199254740993n, 2n ** 63n - 1n, -(2n ** 63n), null, null],
    ],
    [
      'INTEGER',
      [
        '1',
        '"2"',
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
      [1n, 2n, 2n ** 63n - 1n, null, null, null, null, null, null, null, null],
    ],
    ['REAL', ['1.10', '1', '2e1', '9007199254740993', '1e300'], [1.1, 1, 20, null, 1e300]],
    [
      'REAL',
      ['0.5', '"1.10"', '"7"', '"-0.25"', '"1e3"', '".5"', '"5."', '"1.5 "', '"x"', 'true', '"1,234.50"'],
      [0.5, 1.1, 7, -0.25, null, null, null, null, null, null, null],
    ],
    [
      'TEXT',
      ['"x"', '1.10', '12345678901234567890', '1e400', '-0', 'true', 'null', '{"b":1}'],
      ['x', '1.10', '12345678901234567890', '1e400', '-0', null, null, null],
    ],
    ['TEXT', ['"1"', '"true"', '"é\\n\\""', '""', '"[]"'], ['1', 'true', 'é\n"', '', '[]']],
    ['TEXT', ['[1.10,{"b":[]}]', '[]', '"x"'], ['[1.10,{"b":[]}]', '[]', 'x']],
  ])('gives a column that is %s for %j one storage class', (type, texts, expected) => {
    const array = `[${texts.map((text) => `{"a":${text}}`).join()}]`
    const elements = elementsOf([array])

    expect(elements.columns[0]?.type).toBe(type)
    expect(rowsOf([array], elements).map((row) => row.a)).toEqual(expected)
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
  elements: Catalog,
  element: Parameters<typeof leavesOf>[0],
): void {
  const values = new Map<string, Leaf | null>()
  for (const [path, value] of [...listsIn(element), ...leavesOf(element)]) values.set(sqlitePath(path), value)
  for (const { name, path, type } of elements.columns) {
    const found = row[name]
    expect([name, typeof found === 'number' ? found + 0 : found]).toEqual([
      name,
      shown(values.get(path) ?? null, type),
    ])
  }
}

/** The objects with numbers as names, as the lists that they are. */
function listsIn(object: JsonObject, above: readonly string[] = []): [path: string[], list: JsonValue[]][] {
  return Object.entries(object).flatMap(([name, value]) => {
    if (!isJsonObject(value)) return []
    const path = [...above, name]
    const own: [string[], JsonValue[]][] = hasNumbersAsNames(value) ? [[path, Object.values(value)]] : []
    return [...own, ...listsIn(value, path)]
  })
}

/** What a column of this type shows of a value; null: it does not fit. */
function shown(value: Leaf | null, type: string): unknown {
  if (value === null) return null
  if (typeof value === 'boolean') return type === 'INTEGER' ? BigInt(value) : null
  if (Array.isArray(value)) return type === 'TEXT' ? JSON.stringify(value) : null
  if (type === 'TEXT') return isRawNumber(value) ? value.rawJSON : String(value)
  if (typeof value === 'string') return numberIn(value, type)
  const text = isRawNumber(value) ? value.rawJSON : String(value)
  const number = Number(text)
  const isSafe = Math.abs(number) <= Number.MAX_SAFE_INTEGER
  if (/^-?\d+$/.test(text)) {
    if (type === 'REAL') return isSafe ? number + 0 : null
    const whole = BigInt(text)
    return BigInt.asIntN(64, whole) === whole ? whole : null
  }
  // Beyond the range of a double it is a text, and does not fit.
  if (type === 'REAL') return Number.isFinite(number) ? number + 0 : null
  return isSafe && Number.isInteger(number) ? BigInt(number) : null
}

function numberIn(text: string, type: string): unknown {
  if (type === 'REAL')
    return text.length <= 15 && /^-?(0|[1-9]\d*)(\.\d+)?$/.test(text) ? Number(text) + 0 : null
  if (!/^(0|-?[1-9]\d*)$/.test(text)) return null
  const whole = BigInt(text)
  return BigInt.asIntN(64, whole) === whole ? whole : null
}

function rowsOf(texts: readonly (string | null)[], elements: Catalog): Record<string, unknown>[] {
  const db = createTable(texts)
  makeView(db, TABLE, { arrayColumn: 'items', catalog: { ...elements, name: 'orders__items' } })
  return db
    .prepare<[], Record<string, unknown>>('SELECT * FROM "orders__items" ORDER BY "_parent_id", "_index"')
    .all()
}

/** The fields of the elements of these arrays. */
function elementsOf(texts: readonly string[]): Catalog {
  const arrays = texts.map((text) => parseExact(text))
  const elements = arrays.flatMap((array) => (Array.isArray(array) ? array.filter(isJsonObject) : []))
  return extendCatalog(createCatalog([], []), [], elements).catalog
}

function makeView(db: Database.Database, table: Catalog, view: ArrayView): void {
  runRule(db, makeArrayView(SQLITE, table, view))
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
