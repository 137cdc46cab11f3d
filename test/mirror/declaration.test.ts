import { describe, expect, it } from 'vitest'
import { indexOn, withColumn, withName, withType } from '../../src/mirror/declaration.ts'

const ORDERS = `CREATE TABLE "orders" (
  "_organization_id" TEXT NOT NULL,
  "id" INTEGER NOT NULL,
  "total" INTEGER, "tax" INTEGER, mine TEXT DEFAULT 'x',
  PRIMARY KEY ("_organization_id", "id")
) STRICT`

describe('the declaration of a table', () => {
  it.each([
    ['id', 'INTEGER NOT NULL', 'TEXT NOT NULL', '  "id" TEXT NOT NULL,'],
    ['total', 'INTEGER', 'REAL', '  "total" REAL, "tax" INTEGER,'],
    ['tax', 'INTEGER', 'REAL', '  "total" INTEGER, "tax" REAL,'],
  ])('gives one column another type: %s', (column, from, to, line) => {
    const sql = withType(ORDERS, column, from, to)

    expect(sql).toContain(line)
    expect(sql?.split('\n')).toHaveLength(6)
  })

  it.each(['mine', 'other', '_organization_id'])('is not touched where it is another one: %s', (column) => {
    expect(withType(ORDERS, column, 'INTEGER', 'REAL')).toBeNull()
  })

  it('gets a column behind the others, as from ALTER TABLE', () => {
    expect(withColumn(ORDERS, 'a "b"', 'REAL')).toContain(
      `mine TEXT DEFAULT 'x', "a ""b""" REAL,\n  PRIMARY KEY`,
    )
  })

  it('gets none where there is no primary key to put it before', () => {
    expect(withColumn('CREATE TABLE t (a) STRICT', 'b', 'TEXT')).toBeNull()
  })

  it.each(['"orders"', 'orders', '[orders]', '`orders`', '"or""ders"', '"$&"'])(
    'is told under another name: %s',
    (name) => {
      expect(withName(`CREATE TABLE ${name} ("id" TEXT)`, '_new_$&')).toBe(
        'CREATE TABLE "_new_$&" ("id" TEXT)',
      )
    },
  )

  it('is not guessed at where it is no plain table', () => {
    expect(withName('CREATE VIRTUAL TABLE a USING fts5(b)', 'c')).toBeNull()
  })
})

describe('the declaration of an index', () => {
  it.each([
    ['CREATE INDEX by_total ON orders (total)', 'CREATE INDEX "n" ON "t" (total)'],
    ['CREATE INDEX "by ""total""" ON "orders"(total)', 'CREATE INDEX "n" ON "t" (total)'],
    [
      'CREATE UNIQUE INDEX [a b]\n on `orders` (total DESC) WHERE id > 1',
      'CREATE UNIQUE INDEX "n" ON "t" (total DESC) WHERE id > 1',
    ],
    ["CREATE INDEX ümlaut_$1 ON orders (state || ' ON x (')", `CREATE INDEX "n" ON "t" (state || ' ON x (')`],
  ])('is told for another table: %s', (sql, expected) => {
    expect(indexOn(sql, 'n', 't')).toBe(expected)
  })

  it('is not guessed at where comments stand in it', () => {
    expect(indexOn('CREATE INDEX a /* mine */ ON orders (total)', 'n', 't')).toBeNull()
  })
})
