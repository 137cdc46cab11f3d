import fs from 'node:fs'
import Database from 'better-sqlite3'
import { expect } from 'vitest'
import { createDice } from '../../src/sandbox/dice.ts'
import { type Asked, pageOf, type Reply } from '../helpers/list-server.ts'
import type { Workspace } from '../helpers/workspace.ts'

export interface Order {
  id: number | string
  [field: string]: unknown
}

/** Five pages that have the mirror do everything that it does to its tables. */
export const ORDERS: readonly Order[] = [
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

/** Pages that announce a limit, and what each request leaves of it. */
export function limited(asked: Asked, before: readonly number[]): Reply {
  const left = String(59 - before.length)
  return {
    ...pageOf(ORDERS, asked),
    headers: { 'x-ratelimit-limit': '60', 'x-ratelimit-remaining': left },
  }
}

const SEED = Number(process.env.SEED ?? 1)
const IS_LONG = Boolean(process.env.LONG)

/** So many of them, the same ones each time: SEED=2 takes others, LONG=1 all. */
export function someOf<T>(all: readonly T[], count: number): T[] {
  if (IS_LONG) return [...all]
  const dice = createDice(SEED)
  const left = [...all]
  return Array.from({ length: Math.min(count, all.length) }, () =>
    left.splice(dice.below(left.length), 1),
  ).flat()
}

/** The mirror as a dead process left it; read as a copy, so that nobody mends it for the next process. */
export interface Copy {
  /** What SQLite says of it. */
  integrity: unknown
  rows(sql: string, ...values: unknown[]): Record<string, unknown>[]
  close(): void
}

export function copyOf({ mirror }: Workspace): Copy {
  const copy = `${mirror}.copy`
  for (const end of ['', '-wal']) if (fs.existsSync(mirror + end)) fs.copyFileSync(mirror + end, copy + end)
  const connection = new Database(copy)
  return {
    integrity: connection.pragma('integrity_check', { simple: true }),
    rows: (sql, ...values) => connection.prepare(sql).all(...values) as Record<string, unknown>[],
    close() {
      connection.close()
      for (const end of ['', '-wal', '-shm']) fs.rmSync(copy + end, { force: true })
    },
  }
}

/**
 * That the requests of a process read a list of so many pages on: no page left out, and at most three asked again after what
 * others had asked for before it: the last page written, the one being written, and the one in flight. Behind the last page,
 * any still list is asked for one of its pages once more.
 */
export function expectReadOn(asked: readonly number[], furthest: number, lastPage: number): void {
  const pages = withoutCheck(asked, furthest, lastPage)
  const [first = furthest + 1] = pages
  expect(first).toBeLessThanOrEqual(furthest + 1)
  expect(pages).toEqual(pages.map((_, index) => first + index))
  expect(pages.filter((page) => page <= furthest).length).toBeLessThanOrEqual(3)
}

function withoutCheck(asked: readonly number[], furthest: number, lastPage: number): readonly number[] {
  const isBehindTheEnd = (asked.at(-2) ?? furthest) === lastPage
  return isBehindTheEnd && asked.at(-1) === Math.round(0.37 * lastPage) ? asked.slice(0, -1) : asked
}

/** That the mirror holds the list, and nothing is left of what was under way. */
export function expectWhole({ rows, value }: Workspace, list: readonly Order[] = ORDERS): void {
  const ids = list.map(({ id }) => String(id)).toSorted()
  for (const table of ['orders', 'orders_raw']) {
    const found = rows<{ id: string }>(`SELECT CAST(id AS TEXT) AS id FROM ${table}`)
    expect(found.map(({ id }) => id).toSorted()).toEqual(ids)
  }
  const items = rows<{ _json: string }>('SELECT _json FROM orders_raw')
  expect(items.map(({ _json: json }) => JSON.parse(json))).toEqual(expect.arrayContaining([...list]))
  expect(value('SELECT rows FROM sync_jobs')).toBe(list.length)
  expect(value('SELECT count(*) FROM orders_history')).toBe(0)
  expect(value("SELECT count(*) FROM sync_runs WHERE status = 'running'")).toBe(0)
  expect(value('SELECT count(*) FROM sync_jobs WHERE owner IS NOT NULL')).toBe(0)
  expect(value("SELECT count(*) FROM sqlite_schema WHERE name LIKE '\\_new\\_%' ESCAPE '\\'")).toBe(0)
}
