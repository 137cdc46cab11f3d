import { KnownError } from '../../errors.ts'
import { isJsonObject, type JsonObject } from '../../json/value.ts'
import type { KeyPart } from '../../sync/items.ts'
import type { Notice } from '../../sync/types.ts'
import { extendCatalog, fitsKeys } from '../columns/catalog.ts'
import { leftOut, type TypedRow, toRow } from '../columns/row.ts'
import { type KnownColumns, loadColumns } from './known-columns.ts'
import { createRowWriter, type RowWriter } from './rows.ts'
import { type Dialect, one, type Rule, type Runner, run, timeOf } from './sql.ts'
import { type ConfiguredCollection, changeColumns, ensureTables, hasTables } from './tables.ts'
import { fitsView, growViews, makeViews } from './views.ts'

// The tables and views of a collection grow where they cannot hold the items that come. A process knows them as it read them last: each
// transaction that writes rows looks whether another process has changed them since.

/** A statement does not suit the tables: another worker, or somebody else, has changed them since this process read what they are like. */
export class OtherTablesError extends KnownError {
  override readonly name = 'OtherTablesError'
  readonly code = 'DATABASE'
}

/** What a process knows of the tables and views of a collection. */
export interface KnownTables extends KnownColumns {
  write: RowWriter
  /** Of the tables: another number after each change. */
  version: number
}

/** What this process knows of the tables of all collections. */
export function createTables({ dialect, isLocal, now, reading, writing }: Runner) {
  const known = new Map<string, KnownTables>()

  /** The tables of a collection as this process knows them; they are made on the first use. */
  async function of(collection: ConfiguredCollection): Promise<KnownTables> {
    const before = known.get(collection.name)
    if (before) return before
    if (!(await reading(hasTables(collection)))) {
      const refusal = await writing(() => ensureTables(dialect, collection, timeOf(now())))
      if (refusal) throw refusal
    }
    const tables = await reading(knownTables(dialect, collection.name))
    known.set(collection.name, tables)
    return tables
  }

  return {
    of,
    /** The same as they are now; on a server, where that would cost a way there and back, another worker may have changed them since. */
    async now(collection: ConfiguredCollection): Promise<KnownTables> {
      const tables = await of(collection)
      if (!isLocal || (await reading(versionOf(collection.name))) === tables.version) return tables
      known.delete(collection.name)
      return of(collection)
    },
    note: (tables: KnownTables) => known.set(tables.catalog.name, tables),
    forget: (name: string) => known.delete(name),
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

/** Items that are to be stored, with their keys. */
export interface WantedItems {
  keys: readonly (readonly KeyPart[])[]
  items: readonly JsonObject[]
}

/** The typed rows of the items; null if the columns or the views have to be changed first. */
export function typedRows(
  dialect: Dialect,
  { catalog, views }: KnownColumns,
  { keys, items }: WantedItems,
): TypedRow[] | null {
  if (!fitsKeys(catalog, keys)) return null
  const rows: TypedRow[] = []
  for (const item of items) {
    const row = toRow(catalog, item)
    if (!row?.arrays.every((array) => fitsView(views, array))) return null
    rows.push(dialect.stored(row))
  }
  return rows
}

/** Rows that fit their tables. */
export interface Fitted {
  tables: KnownTables
  typed: readonly TypedRow[]
  notices: readonly Notice[]
}

/** Changes the tables of a collection, which cannot hold the items, and returns the typed rows of these. `at`: ISO 8601. */
export function* fitTables(dialect: Dialect, name: string, wanted: WantedItems, at: string): Rule<Fitted> {
  // One process at a time changes a collection; the others then find what they need.
  yield* run('UPDATE sync_collections SET version = version + 1 WHERE name = :name', { name })
  const { keys, items } = wanted
  const known = yield* loadColumns(dialect, name)
  const { catalog, changes, notices } = extendCatalog(known.catalog, keys, items)
  if (changes.length > 0) {
    yield* changeColumns(dialect, name, changes, at)
    yield* makeViews(dialect, { ...known, catalog })
  }
  const arrays = items.flatMap((item) => toRow(catalog, item)?.arrays ?? [])
  yield* growViews(dialect, { ...known, catalog }, arrays, at)
  const grown = yield* knownTables(dialect, name)
  const typed = typedRows(dialect, grown, wanted)
  if (!typed) throw new Error(`the tables of ${name} were changed, and still cannot hold the items`)
  return { tables: grown, typed, notices }
}

/** Warns of fields that the tables and views have no room for. */
export function noticesOfFull({ tables, typed }: Fitted, { items }: WantedItems): Notice[] {
  const full = [...tables.views].filter(([, view]) => view.room <= 0)
  const ofViews = full.flatMap(([arrayColumn, view]) => {
    const arrays = typed.flatMap((row) => row.arrays.filter(({ column }) => column === arrayColumn))
    return leftOut(
      view,
      arrays.flatMap(({ array }) => array.filter(isJsonObject)),
    )
  })
  return [...leftOut(tables.catalog, items), ...ofViews]
}
