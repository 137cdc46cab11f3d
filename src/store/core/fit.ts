import type { JsonObject } from '../../json/value.ts'
import type { KeyPart } from '../../sync/items.ts'
import type { Notice } from '../../sync/types.ts'
import { type Catalog, fitsKeys, shapeOf, type TableShape } from '../columns/catalog.ts'
import type { ColumnChange } from '../columns/column.ts'
import { type ArrayView, arrayViewName, type ElementColumn, extendElements } from '../columns/elements.ts'
import { extendCatalog, extensionNotices } from '../columns/extend.ts'
import { type ArrayValue, type TypedRow, toRow } from '../columns/row.ts'
import { type ElementSql, isTaken, makeArrayView } from './array-views.ts'
import { makeViews } from './collections.ts'
import { fillLists } from './lists-with-holes.ts'
import { misfitsIndexSql } from './misfits.ts'
import { createRowWriter, type RowWriter } from './rows.ts'
import { type Dialect, exec, one, type Rule } from './sql.ts'
import { type ConfiguredCollection, loadArrayViews, loadCatalog, saveColumns, saveView } from './tables.ts'

// The tables and views of a collection are changed where they cannot hold the items that come.

/** What a process knows of the tables and views of a collection. */
export interface KnownTables {
  shape: TableShape
  writer: RowWriter
  catalog: Catalog
  /** By the column of their array. */
  views: ReadonlyMap<string, ArrayView>
}

export function* knownTables(dialect: Dialect, collection: ConfiguredCollection): Rule<KnownTables> {
  const { name } = collection
  const catalog = yield* loadCatalog(dialect, collection)
  const shape = shapeOf(name, catalog)
  const views = yield* viewsByColumn(dialect, name)
  return { shape, writer: createRowWriter(dialect, shape), catalog, views }
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

/** A result; or the items that the tables cannot hold yet. */
export type Outcome<T> = { result: T; wanted?: never } | { result?: never; wanted: WantedItems }

/** Writes rows where the tables can hold them. */
export type Writing<T> = (tables: KnownTables) => Rule<Outcome<T>>

/** How a store gives access to the tables of a collection. */
export interface TableAccess {
  /** Runs a rule in a transaction, with the tables as they are then. `begin` makes the rule, again if the transaction runs twice. */
  withTables<T>(collection: ConfiguredCollection, begin: Writing<T>): Promise<Outcome<T>>
  /** The same after `fitTables`: in its transaction, or in one after it. */
  withFittedTables<T>(
    collection: ConfiguredCollection,
    wanted: WantedItems,
    at: string,
    begin: Writing<T>,
  ): Promise<{ outcome: Outcome<T>; notices: readonly Notice[] }>
}

/** Other processes may need other columns for their items at the same time. */
const MOST_FITTINGS = 20

/** Writes rows, and changes the tables first where they cannot hold them. Returns notices for the log, too. `at`: ISO 8601. */
export async function writeFitting<T>(
  { withTables, withFittedTables }: TableAccess,
  collection: ConfiguredCollection,
  at: string,
  begin: Writing<T>,
): Promise<{ result: T; notices: readonly Notice[] }> {
  // By message, since a plan that is made again repeats its notices.
  const notices = new Map<string, Notice>()
  let outcome = await withTables(collection, begin)
  for (let fittings = 0; fittings < MOST_FITTINGS; fittings++) {
    if (!outcome.wanted) return { result: outcome.result, notices: [...notices.values()] }
    const fitted = await withFittedTables(collection, outcome.wanted, at, begin)
    for (const notice of fitted.notices) notices.set(notice.message, notice)
    ;({ outcome } = fitted)
  }
  throw new Error(
    `the tables of ${collection.name} were changed ${MOST_FITTINGS} times, and still cannot hold the items of this page`,
  )
}

/** How a database changes tables that have rows, and views that somebody may read. */
export interface Alteration {
  dialect: Dialect
  /** Makes all changes of columns. */
  alterTables(collection: string, changes: readonly ColumnChange[]): Rule<void>
  /** Makes a view, or makes it anew. */
  makeView(name: string, select: string): Rule<void>
  elements: ElementSql
  /** The SELECT of the view of changes, and of that of versions: see `selectChanges` and `selectVersions`. */
  changes(shape: ViewedTable): string
  versions(shape: TableShape): string
}

export type ViewedTable = Pick<TableShape, 'name' | 'keyColumns'>

/** Changes columns and views so that they can hold these items. */
export function* fitTables(
  alteration: Alteration,
  collection: ConfiguredCollection,
  { keys, items }: WantedItems,
  at: string,
): Rule<Notice[]> {
  const { dialect } = alteration
  const { name } = collection
  // One process at a time changes a collection; the others then find what they need.
  const found = yield* one(`SELECT 1 FROM sync_collections WHERE name = :name ${dialect.forUpdate}`, { name })
  if (!found) throw new Error(`${name} has no tables`)
  const extension = extendCatalog(yield* loadCatalog(dialect, collection), keys, items)
  const { catalog, changes } = extension
  yield* alteration.alterTables(name, changes)
  yield* saveColumns(
    dialect,
    name,
    changes.map(({ column }) => column),
    at,
  )
  const shape = shapeOf(name, catalog)
  if (changes.some(({ kind, column }) => kind === 'add' && column.role === 'text'))
    yield* exec(misfitsIndexSql(dialect, shape))
  if (changes.length > 0) yield* makeViews(alteration, shape)
  const writer = createRowWriter(dialect, shape)
  const filled = yield* fillLists(dialect, { writer, catalog, shape }, changes)
  const arrays = [...filled, ...items.flatMap((item) => toRow(catalog, item)?.arrays ?? [])]
  const views = yield* extendViews(alteration, shape, arrays)
  return [...extensionNotices(extension), ...views]
}

/** Makes the views that these arrays need, or makes them anew. */
function* extendViews(
  alteration: Alteration,
  shape: ViewedTable,
  arrays: readonly ArrayValue[],
): Rule<Notice[]> {
  const { dialect } = alteration
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
    if (elements.length >= dialect.limits.mostColumns && !isFull(views.get(arrayColumn)))
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
    else yield* makeArrayView(alteration, shape, view)
  }
  return notices
}
