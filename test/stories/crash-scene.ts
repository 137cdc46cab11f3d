import fs from 'node:fs'
import Database from 'better-sqlite3'
import { expect } from 'vitest'
import type { Workspace } from '../helpers/workspace.ts'

/** Five pages that have the mirror do everything that it does to its tables. */
export const ORDERS: readonly object[] = [
  { id: 1, price: 1 },
  { id: 2, price: 2 },
  // A further column.
  { id: 3, price: 3, note: 'a note' },
  { id: 4, price: 4 },
  // A whole number's column becomes one of fractions; a view.
  { id: 5, price: 5 },
  { id: 6, price: 6.5, lines: [{ sku: 'a' }, { sku: 'b' }] },
  // The key's column becomes one of texts.
  { id: 'seven', price: 7 },
  { id: 8, price: 8 },
  { id: 9, price: 9 },
  { id: 10, price: 10 },
]

/** The mirror as a dead process left it, found sound; a copy, so that nobody mends it for the next process. */
export function copyOf({ mirror }: Workspace): Database.Database {
  const copy = `${mirror}.copy`
  for (const end of ['', '-wal', '-shm']) fs.rmSync(copy + end, { force: true })
  for (const end of ['', '-wal']) if (fs.existsSync(mirror + end)) fs.copyFileSync(mirror + end, copy + end)
  const connection = new Database(copy)
  expect(connection.pragma('integrity_check', { simple: true })).toBe('ok')
  return connection
}

/** That the mirror holds the list, and nothing is left of what was under way. */
export function expectWhole({ rows, value }: Workspace): void {
  const items = rows<{ _json: string }>('SELECT _json FROM orders_raw').map(({ _json: json }) => json)
  expect(items.toSorted()).toEqual(ORDERS.map((order) => JSON.stringify(order)).toSorted())
  expect(value('SELECT count(*) FROM orders')).toBe(ORDERS.length)
  expect(value('SELECT rows FROM sync_jobs')).toBe(ORDERS.length)
  expect(value('SELECT count(*) FROM orders_history')).toBe(0)
  expect(value("SELECT count(*) FROM sync_runs WHERE status = 'running'")).toBe(0)
  expect(value('SELECT count(*) FROM sync_jobs WHERE owner IS NOT NULL')).toBe(0)
  expect(value("SELECT count(*) FROM sqlite_schema WHERE name LIKE '\\_new\\_%' ESCAPE '\\'")).toBe(0)
}
