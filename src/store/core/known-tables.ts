import { isJsonObject } from '../../json/value.ts'
import type { Upsert } from '../../sync/store.ts'
import type { Notice } from '../../sync/types.ts'
import { extendCatalog, fitsKeys, keyValues } from '../columns/catalog.ts'
import { leftOut, toRow } from '../columns/row.ts'
import { type KnownColumns, loadColumns } from './known-columns.ts'
import { createRowWriter, type PlacedRow, type RowWriter } from './rows.ts'
import { type Dialect, one, type Rule, run, type Runner } from './sql.ts'
import { changeColumns } from './tables.ts'
import { fitsView, growViews, makeViews } from './views.ts'

// The tables and views of a collection grow where they cannot hold the items that come. A process knows them as it read them last: each
// transaction that writes rows looks whether another process has changed them since.

/** What a process knows of the tables and views of a collection. */
export interface KnownTables extends KnownColumns {
  write: RowWriter
  /** Of the tables: another number after each change. */
  version: number
}

/** What this process knows of the tables of each collection that it has a job of. */
export function createTables({ dialect, reading }: Pick<Runner, 'dialect' | 'reading'>) {
  const known = new Map<string, KnownTables>()
  const note = (tables: KnownTables) => known.set(tables.catalog.name, tables)

  /** As it read them last. */
  async function of(name: string): Promise<KnownTables> {
    const tables = known.get(name) ?? (await reading(knownTables(dialect, name)))
    note(tables)
    return tables
  }

  return {
    of,
    /** As they are now: another process may have changed them since. */
    async now(name: string): Promise<KnownTables> {
      if (known.get(name)?.version !== (await reading(versionOf(name)))) known.delete(name)
      return of(name)
    },
    note,
  }
}

export function* knownTables(dialect: Dialect, name: string): Rule<KnownTables> {
  // First, so that a change between the two is noticed later.
  const version = yield* versionOf(name)
  const known = yield* loadColumns(dialect, name)
  return { ...known, write: createRowWriter(dialect, known.catalog), version }
}

function* versionOf(name: string): Rule<number> {
  const text = 'SELECT version FROM sync_collections WHERE name = :name'
  return (yield* one<{ version: number }>(text, { name }))?.version ?? 0
}

/** Places rows that are to be written; null if the columns or the views have to be changed first. */
export function placeRows(
  dialect: Dialect,
  { catalog, views }: KnownColumns,
  upserts: readonly Upsert[],
): PlacedRow[] | null {
  if (!fitsKeys(catalog, keysOf(upserts))) return null
  const rows: PlacedRow[] = []
  for (const upsert of upserts) {
    const key = keyValues(upsert.key.parts, catalog.keys)
    const row = toRow(catalog, upsert.value)
    if (!key || !row?.arrays.every((array) => fitsView(views, array))) return null
    rows.push({ upsert, key, row: dialect.stored(row) })
  }
  return rows
}

function keysOf(upserts: readonly Upsert[]) {
  return upserts.map(({ key }) => key.parts)
}

/** Rows that fit their tables. */
export interface Fitted {
  tables: KnownTables
  rows: readonly PlacedRow[]
  notices: readonly Notice[]
}

/** Changes the tables of a collection, which cannot hold the rows that are to be written, and places these. `at`: ISO 8601. */
export function* fitTables(
  dialect: Dialect,
  name: string,
  upserts: readonly Upsert[],
  at: string,
): Rule<Fitted> {
  // One process at a time changes a collection; the others then find what they need.
  yield* run('UPDATE sync_collections SET version = version + 1 WHERE name = :name', { name })
  const items = upserts.map(({ value }) => value)
  const known = yield* loadColumns(dialect, name)
  const { catalog, changed, notices } = extendCatalog(known.catalog, keysOf(upserts), items)
  if (changed.length > 0) {
    yield* changeColumns(dialect, known.catalog, changed, at)
    yield* makeViews(dialect, { ...known, catalog })
  }
  const arrays = items.flatMap((item) => toRow(catalog, item)?.arrays ?? [])
  yield* growViews(dialect, { ...known, catalog }, arrays, at)
  const grown = yield* knownTables(dialect, name)
  const rows = placeRows(dialect, grown, upserts)
  if (!rows) throw new Error(`the tables of ${name} were changed, and still cannot hold the items`)
  return { tables: grown, rows, notices }
}

/** Warns of fields that the tables and views have no room for. */
export function noticesOfFull({ tables, rows }: Fitted): Notice[] {
  const full = [...tables.views].filter(([, view]) => view.room <= 0)
  const ofViews = full.flatMap(([arrayColumn, view]) => {
    const arrays = rows.flatMap(({ row }) => row.arrays.filter(({ column }) => column === arrayColumn))
    return leftOut(
      view,
      arrays.flatMap(({ array }) => array.filter(isJsonObject)),
    )
  })
  const items = rows.map(({ upsert }) => upsert.value)
  return [...leftOut(tables.catalog, items), ...ofViews]
}
