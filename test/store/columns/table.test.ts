import Database from 'better-sqlite3'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  canonicalNumber,
  isRawNumber,
  type JsonObject,
  numberText,
  type RawNumber,
} from '../../../src/json/value.ts'
import { type Catalog, createCatalog } from '../../../src/store/columns/catalog.ts'
import type { ColumnChange } from '../../../src/store/columns/column.ts'
import type { Leaf } from '../../../src/store/columns/flatten.ts'
import { sqlitePath } from '../../../src/store/columns/flatten.ts'
import { items } from '../../json/arbitrary.ts'
import { placePage } from './items.ts'
import { leavesOf } from './leaves.ts'

describe('a STRICT table with the columns of a catalog', () => {
  it('returns every value of every item', () => {
    fc.assert(
      fc.property(fc.array(fc.array(items, { maxLength: 4 }), { maxLength: 5 }), (pages) => {
        const db = createTable()
        const catalog = pages.reduce(
          (before, page, number) => store(db, before, page, number * 10),
          createCatalog([], [['no key']]),
        )

        for (const [number, page] of pages.entries())
          for (const [index, item] of page.entries()) expectStored(db, catalog, item, number * 10 + index)
        db.close()
      }),
      { numRuns: 500 },
    )
  })
})

function createTable(): Database.Database {
  return new Database(':memory:')
    .defaultSafeIntegers()
    .exec('CREATE TABLE "orders" ("_row" INTEGER PRIMARY KEY) STRICT')
}

/** The items of a page, in rows from this one on. */
function store(db: Database.Database, before: Catalog, page: readonly JsonObject[], from: number): Catalog {
  const { catalog, rows, changes } = placePage(before, page)
  for (const change of changes) alter(db, change)
  for (const [index, { values }] of rows.entries()) {
    const columns = ['_row', ...values.keys()].map(quoted).join(', ')
    const marks = ['?', ...Array.from(values, () => '?')].join(', ')
    db.prepare(`INSERT INTO "orders" (${columns}) VALUES (${marks})`).run(
      BigInt(from + index),
      ...values.values(),
    )
  }
  return catalog
}

function alter(db: Database.Database, { kind, column }: ColumnChange): void {
  const name = quoted(column.name)
  if (kind === 'add') db.exec(`ALTER TABLE "orders" ADD COLUMN ${name} ${column.type}`)
  if (kind !== 'type') return
  db.exec(`ALTER TABLE "orders" ADD COLUMN "_new" REAL; UPDATE "orders" SET "_new" = ${name}`)
  const rounded = db.prepare(`SELECT count(*) FROM "orders" WHERE CAST("_new" AS INTEGER) <> ${name}`).pluck()
  expect(rounded.get()).toBe(0n)
  db.exec(`ALTER TABLE "orders" DROP COLUMN ${name}; ALTER TABLE "orders" RENAME COLUMN "_new" TO ${name}`)
}

function expectStored(db: Database.Database, { columns }: Catalog, item: JsonObject, row: number): void {
  const stored = db
    .prepare<[bigint], Record<string, unknown>>('SELECT * FROM "orders" WHERE "_row" = ?')
    .get(BigInt(row))
  const leaves = leavesOf(item).flatMap(([path, value]) =>
    value === null ? [] : [{ path: sqlitePath(path), value }],
  )
  for (const { path, value } of leaves) {
    const cells = columns.filter((column) => column.path === path).map((column) => stored?.[column.name])
    const filled = cells.filter((cell) => cell !== null)
    // A text that is a number is that number in a numeric column.
    const isNumeric = typeof value === 'string' && filled.some((cell) => typeof cell !== 'string')
    expect(filled.map((cell) => meaning(cell, value))).toEqual([isNumeric ? sized(value) : expected(value)])
  }
  const filled = Object.values(stored ?? {}).filter((cell) => cell !== null)
  expect(filled.length).toBe(leaves.length + 1)
}

/** The cell, in a form that can be compared with its value. */
function meaning(cell: unknown, value: Leaf): string {
  if (typeof value === 'boolean')
    return cell === 1n || cell === 1 || cell === 'true'
      ? 'true'
      : String(cell === 0n || cell === 0 || cell === 'false' ? false : cell)
  if (typeof cell === 'bigint') return String(cell)
  if (typeof cell === 'number') return Number.isInteger(cell) ? String(BigInt(cell)) : String(cell)
  return isNumber(value) ? sized(String(cell)) : String(cell)
}

function expected(value: Leaf): string {
  if (typeof value === 'boolean') return String(value)
  if (typeof value === 'string') return value.toWellFormed()
  return isNumber(value) ? sized(numberText(value)) : JSON.stringify(value)
}

/** A fraction by its double, all other numbers by their decimal value. */
function sized(text: string): string {
  const canonical = canonicalNumber(text)
  const double = Number(text)
  const hasDouble = Number.isFinite(double) && double !== 0
  if (!/\.|e-/.test(canonical) || !hasDouble) return canonical
  return Number.isInteger(double) ? String(BigInt(double)) : String(double)
}

function isNumber(value: Leaf): value is number | RawNumber {
  return typeof value === 'number' || isRawNumber(value)
}

function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}
