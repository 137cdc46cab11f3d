import type { JsonObject } from '../../json/value.ts'
import type { KeyPart } from '../../sync/items.ts'
import type { Notice } from '../../sync/types.ts'
import { type Catalog, fitsKeys, shapeOf, type TableShape } from '../columns/catalog.ts'
import { type ArrayView, arrayViewName, type ElementColumn, extendElements } from '../columns/elements.ts'
import { extendCatalog, extensionNotices } from '../columns/extend.ts'
import { type ArrayValue, type TypedRow, toRow } from '../columns/row.ts'
import {
  type ConfiguredCollection,
  hasTables,
  loadArrayViews,
  loadCatalog,
  saveColumns,
  saveView,
} from './catalogs.ts'
import { isTaken, makeArrayView, makeViews } from './collection-views.ts'
import { fillLists } from './lists-with-holes.ts'
import { misfitsIndexSql } from './misfits.ts'
import { createRowWriter, type RowWriter } from './rows.ts'
import { type Dialect, exec, one, type Rule, type Runner, run } from './sql.ts'
import { changeColumns, ensureTables } from './tables.ts'

// The tables and views of a collection grow where they cannot hold the items that come. A process knows them as it read them last: each
// transaction that writes rows looks whether another process has changed them since.

/** What a process knows of the tables and views of a collection. */
export interface KnownTables {
  shape: TableShape
  writer: RowWriter
  catalog: Catalog
  /** By the column of their array. */
  views: ReadonlyMap<string, ArrayView>
  /** Of the tables: another number after each change. */
  version: number
}

/** What this process knows of the tables of all collections. */
export function createTables({ dialect, isLocal, reading, writing }: Runner) {
  const known = new Map<string, KnownTables>()

  /** The tables of a collection as this process knows them; they are made on the first use. */
  async function of(collection: ConfiguredCollection): Promise<KnownTables> {
    const before = known.get(collection.name)
    if (before) return before
    if (!(await reading(hasTables(collection)))) await writing(() => ensureTables(dialect, collection))
    const tables = await reading(knownTables(dialect, collection))
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
    note: (tables: KnownTables) => known.set(tables.shape.name, tables),
    forget: (name: string) => known.delete(name),
  }
}

/** The tables as they are now, if they are not known so already. `version`: as the transaction found it. */
export function* currentTables(
  dialect: Dialect,
  collection: ConfiguredCollection,
  before: KnownTables,
  version: number | null,
): Rule<KnownTables> {
  return version === before.version ? before : yield* knownTables(dialect, collection)
}

function* knownTables(dialect: Dialect, collection: ConfiguredCollection): Rule<KnownTables> {
  const { name } = collection
  // First, so that a change between the two is noticed later.
  const version = yield* versionOf(name)
  const catalog = yield* loadCatalog(dialect, collection)
  const shape = shapeOf(name, catalog)
  const views = yield* viewsByColumn(dialect, name)
  return { shape, writer: createRowWriter(dialect, shape), catalog, views, version }
}

function* versionOf(name: string): Rule<number> {
  const row = yield* one<{ version: number }>('SELECT version FROM sync_collections WHERE name = :name', {
    name,
  })
  return row?.version ?? 0
}

function* viewsByColumn(dialect: Dialect, collection: string): Rule<Map<string, ArrayView>> {
  const views = yield* loadArrayViews(dialect, collection)
  return new Map(views.map((view) => [view.arrayColumn, view]))
}

/** Items that are to be stored, with their keys. */
export interface WantedItems {
  keys: readonly (readonly KeyPart[])[]
  items: readonly JsonObject[]
}

/** The typed rows of the items; null if the columns or the views have to be changed first. */
export function typedRows(
  dialect: Dialect,
  { catalog, views }: KnownTables,
  { keys, items }: WantedItems,
): TypedRow[] | null {
  if (!fitsKeys(catalog.keyTypes, keys)) return null
  const rows: TypedRow[] = []
  for (const item of items) {
    const row = toRow(catalog, item)
    if (!row || row.arrays.some((array) => extendedElements(dialect, views, array) !== null)) return null
    rows.push(dialect.stored(catalog, row))
  }
  return rows
}

/** The columns of the view of an array; null if it has them all. */
function extendedElements(
  { limits }: Dialect,
  views: ReadonlyMap<string, ArrayView>,
  { column, array }: ArrayValue,
): readonly ElementColumn[] | null {
  return extendElements(views.get(column)?.elements ?? NO_ELEMENTS, array, limits)
}

const NO_ELEMENTS: readonly ElementColumn[] = []

/** Rows that fit their tables. */
export interface Fitted {
  tables: KnownTables
  typed: readonly TypedRow[]
  notices: readonly Notice[]
}

/** The typed rows of the items, in tables that are changed first where they cannot hold them. `tables`: as they are now. `at`: ISO 8601. */
export function* fitTables(
  dialect: Dialect,
  collection: ConfiguredCollection,
  tables: KnownTables,
  wanted: WantedItems,
  at: string,
): Rule<Fitted> {
  const typed = typedRows(dialect, tables, wanted)
  if (typed) return { tables, typed, notices: [] }
  // One process at a time changes a collection; the others then find what they need.
  yield* run('UPDATE sync_collections SET version = version + 1 WHERE name = :name', {
    name: collection.name,
  })
  const notices = yield* growTables(dialect, collection, wanted, at)
  const grown = yield* knownTables(dialect, collection)
  const rows = typedRows(dialect, grown, wanted)
  if (!rows) throw new Error(`the tables of ${collection.name} were changed, and still cannot hold the items`)
  return { tables: grown, typed: rows, notices }
}

/** Changes columns and views so that they can hold these items. */
function* growTables(
  dialect: Dialect,
  collection: ConfiguredCollection,
  { keys, items }: WantedItems,
  at: string,
): Rule<Notice[]> {
  const { name } = collection
  const extension = extendCatalog(yield* loadCatalog(dialect, collection), keys, items)
  const { catalog, changes } = extension
  yield* changeColumns(dialect, name, changes)
  yield* saveColumns(
    dialect,
    name,
    changes.map(({ column }) => column),
    at,
  )
  const shape = shapeOf(name, catalog)
  if (changes.some(({ kind, column }) => kind === 'add' && column.role === 'text'))
    yield* exec(misfitsIndexSql(dialect, shape))
  if (changes.length > 0) yield* makeViews(dialect, shape)
  const writer = createRowWriter(dialect, shape)
  const filled = yield* fillLists(dialect, { writer, catalog, shape }, changes)
  const arrays = [...filled, ...items.flatMap((item) => toRow(catalog, item)?.arrays ?? [])]
  const views = yield* growViews(dialect, shape, arrays)
  return [...extensionNotices(extension), ...views]
}

/** Makes the views that these arrays need, or makes them anew. */
function* growViews(dialect: Dialect, shape: TableShape, arrays: readonly ArrayValue[]): Rule<Notice[]> {
  const { name: collection } = shape
  const views = yield* viewsByColumn(dialect, collection)
  const changed = new Map<string, ArrayView>()
  const notices: Notice[] = []
  const isFull = (view: ArrayView | undefined) => (view?.elements.length ?? 0) >= dialect.limits.mostColumns
  for (const array of arrays) {
    const { column: arrayColumn } = array
    const elements = extendedElements(dialect, views, array)
    if (!elements) continue
    const taken = [...views.values()].map((view) => view.name)
    const name = views.get(arrayColumn)?.name ?? arrayViewName(collection, arrayColumn, taken, dialect.limits)
    const view = { name, arrayColumn, elements }
    if (isFull(view) && !isFull(views.get(arrayColumn)))
      notices.push({
        level: 'warn',
        message: `${name} has ${elements.length} fields, the most it can have: all further ones are in the array only`,
      })
    views.set(arrayColumn, view)
    changed.set(arrayColumn, view)
  }
  for (const view of changed.values()) {
    yield* saveView(dialect, view)
    if (yield* isTaken(dialect, view.name))
      notices.push({
        level: 'warn',
        message: `the name ${view.name} is taken, so there is no view of that array`,
      })
    else yield* makeArrayView(dialect, shape, view)
  }
  return notices
}
