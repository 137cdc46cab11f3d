import type { JsonObject } from '../../json/value.ts'
import type { KeyPart } from '../../sync/items.ts'
import type { Notice } from '../../sync/types.ts'
import { printable } from '../../text.ts'
import {
  type Catalog,
  fitsKeys,
  keyColumnNames,
  shapeOf,
  splitKey,
  type TableShape,
} from '../columns/catalog.ts'
import type { Column, ColumnChange } from '../columns/column.ts'
import {
  type ArrayView,
  arrayViewName,
  type ExtendedElements,
  extendElements,
  sentAtOf,
} from '../columns/elements.ts'
import { type Extension, extendCatalog, extensionNotices } from '../columns/extend.ts'
import { type ArrayValue, type TypedRow, toRow } from '../columns/row.ts'
import { type ElementSql, isTaken, makeArrayView } from './array-views.ts'
import { createRowWriter, type RowWriter } from './rows.ts'
import { type Dialect, one, type Rule, run } from './sql.ts'
import { type ConfiguredCollection, loadArrayViews, loadCatalog, saveColumns, saveView } from './tables.ts'
import type { MirrorView } from './views.ts'

// The tables and views of a collection are changed where they cannot hold the items that come.

/** What a process knows of the tables and views of a collection. */
export interface KnownTables {
  shape: TableShape
  writer: RowWriter
  catalog: Catalog
  /** By the column of their array. */
  views: ReadonlyMap<string, ArrayView>
  told: Told
}

/** What a process has already reported of a collection, so that it reports it only once. */
export interface Told {
  /** Whether it has said that there is no room for further columns. */
  isFull: boolean
  /** Columns whose arrays get no view, since its name is taken, or whose view stays as it is. */
  withoutView: ReadonlySet<string>
}

export const NOTHING_TOLD: Told = { isFull: false, withoutView: new Set() }

export function* knownTables(
  dialect: Dialect,
  collection: ConfiguredCollection,
  told = NOTHING_TOLD,
): Rule<KnownTables> {
  const { name } = collection
  const catalog = yield* loadCatalog(dialect, collection, told.isFull)
  const shape = shapeOf(name, catalog)
  const views = yield* viewsByColumn(dialect, name)
  return { shape, writer: createRowWriter(dialect, shape), catalog, views, told }
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
  { catalog, views, told }: KnownTables,
  { keys, items }: WantedItems,
): TypedRow[] | null {
  if (!fitsKeys(catalog.keyTypes, keys)) return null
  const rows: TypedRow[] = []
  for (const item of items) {
    const row = toRow(catalog, item)
    if (!row || row.arrays.some((array) => extendedView(dialect, views, told.withoutView, array) !== null))
      return null
    rows.push(dialect.stored(catalog, row))
  }
  return rows
}

const NO_ELEMENTS: readonly Column[] = []

/** The elements of a view with those of this array; null if it has them all. */
function extendedView(
  { limits }: Dialect,
  views: ReadonlyMap<string, ArrayView>,
  withoutView: ReadonlySet<string>,
  { column, array }: ArrayValue,
): ExtendedElements | null {
  if (withoutView.has(column)) return null
  return extendElements(views.get(column)?.elements ?? NO_ELEMENTS, array, limits)
}

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
  /** Makes all changes of columns; or none, if something of a user depends on the type of one, and returns that. */
  alterTables(collection: ConfiguredCollection, changes: readonly ColumnChange[]): Rule<KeptTypes | null>
  /** Views that every mirror in this database has beside those of `views.ts`. */
  furtherViews: readonly MirrorView[]
  /** Makes a view, or makes it anew; with the statements that say what it is. */
  makeView(name: string, select: string, comments: readonly string[]): Rule<void>
  elements: ElementSql
  /** The SELECT of the view of changes: see `selectChanges`. */
  changes(shape: ViewedTable): string
  /** Runs a rule. Where the database refuses it, undoes it and returns what is in the way. */
  tried(begin: () => Rule<void>): Rule<string | null>
}

export interface KeptTypes {
  columns: readonly string[]
  /** What depends on them, in the database's words. */
  obstacle: string
}

export type ViewedTable = Pick<TableShape, 'name' | 'keyColumns'>

export function viewedTable({ limits }: Dialect, { name, key }: ConfiguredCollection): ViewedTable {
  return { name, keyColumns: keyColumnNames(splitKey(key), limits) }
}

/** How the columns have to change so that they can hold the items, as the mirror knows them now. */
export function* planColumns(
  dialect: Dialect,
  collection: ConfiguredCollection,
  { keys, items }: WantedItems,
  told: Told,
): Rule<Extension> {
  return extendCatalog(yield* loadCatalog(dialect, collection, told.isFull), keys, items)
}

/** Changes columns and views so that they can hold these items. Where something of a user depends on a column's type, fractions go to NAME__text. */
export function* fitTables(
  alteration: Alteration,
  collection: ConfiguredCollection,
  wanted: WantedItems,
  told: Told,
  at: string,
): Rule<{ notices: readonly Notice[]; told: Told }> {
  const { dialect } = alteration
  const { name } = collection
  // One process at a time changes a collection; the others then find what they need.
  const found = yield* one(`SELECT 1 FROM sync_collections WHERE name = :name ${dialect.forUpdate}`, { name })
  if (!found) throw new Error(`${name} has no tables`)
  const kept: Notice[] = []
  let extension = yield* planColumns(dialect, collection, wanted, told)
  for (;;) {
    const refusal = yield* alteration.alterTables(collection, extension.changes)
    if (!refusal) break
    yield* keepTypes(dialect, name, refusal)
    kept.push(keptNotice(name, refusal))
    extension = yield* planColumns(dialect, collection, wanted, told)
  }
  const { catalog, changes } = extension
  yield* saveColumns(
    dialect,
    name,
    changes.map(({ column }) => column),
    at,
  )
  const arrays = wanted.items.flatMap((item) => toRow(catalog, item)?.arrays ?? [])
  const shape = viewedTable(dialect, collection)
  const views = yield* extendViews(alteration, shape, extension, arrays, told, at)
  return {
    notices: [...kept, ...extensionNotices(extension), ...views.notices],
    told: { isFull: catalog.isFullReported, withoutView: views.withoutView },
  }
}

function keepTypes({ each }: Dialect, collection: string, { columns }: KeptTypes): Rule<number> {
  return run(
    `
      UPDATE sync_known_columns
      SET wide = 1
      WHERE collection = :collection AND "column" IN (SELECT kept.value FROM ${each(':columns::text', 'kept')})
    `,
    { collection, columns: JSON.stringify(columns) },
  )
}

function keptNotice(collection: string, { columns, obstacle }: KeptTypes): Notice {
  const message = `${columns.join(', ')} of ${collection} cannot hold fractions, ${dependent(obstacle)}: they go to NAME__text`
  return { level: 'warn', message: printable(message, 500) }
}

function dependent(obstacle: string): string {
  return `since ${obstacle} depends on it and cannot be made again unchanged`
}

/** Makes the views that these arrays and changes of columns need, once the columns are changed. */
function* extendViews(
  alteration: Alteration,
  shape: ViewedTable,
  { catalog, changes }: Pick<Extension, 'catalog' | 'changes'>,
  arrays: readonly ArrayValue[],
  told: Told,
  at: string,
): Rule<{ notices: Notice[]; withoutView: Set<string> }> {
  const { dialect } = alteration
  const { name: collection } = shape
  const views = yield* viewsByColumn(dialect, collection)
  const withoutView = new Set(told.withoutView)
  const notices: Notice[] = []
  /** The views to make again, by the column of their array, as they were; undefined for a new one. */
  const toChange = new Map<string, ArrayView | undefined>()
  // From now on these views tell lists from texts that read like one.
  const wide = changes.filter(({ kind }) => kind === 'wide').map(({ column }) => column.name)
  for (const [column, view] of views)
    if (wide.includes(column) && !(yield* isTaken(dialect, view.name))) toChange.set(column, view)
  for (const array of arrays) {
    const { column } = array
    const extended = extendedView(dialect, views, withoutView, array)
    if (!extended) continue
    const known = views.get(column)
    const others = [...views.values()].map((view) => view.name)
    const name = known?.name ?? arrayViewName(collection, column, others, dialect.limits)
    if (yield* isTaken(dialect, name)) {
      withoutView.add(column)
      notices.push({ level: 'warn', message: `the name ${name} is taken, so there is no view of that array` })
      continue
    }
    const own = catalog.columns.find((other) => other.name === column)
    const sentAt = own ? sentAtOf(own) : null
    views.set(column, { name, arrayColumn: column, elements: extended.elements, sentAt })
    if (!toChange.has(column)) toChange.set(column, known)
    for (const message of extended.warnings) notices.push({ level: 'warn', message: `${name}: ${message}` })
  }
  for (const [column, known] of toChange) {
    const view = views.get(column)
    if (!view) continue
    const obstacle = yield* changeView(alteration, shape, view, at)
    if (obstacle === null) continue
    const kept = known && withKeptTypes(dialect, known, view, arrays)
    const isKept = kept !== undefined && (yield* changeView(alteration, shape, kept, at)) === null
    if (!isKept) withoutView.add(column)
    const message = isKept
      ? `columns of ${view.name} cannot hold fractions, ${dependent(obstacle)}: they go to NAME__text`
      : `the view ${view.name} stays as it was, ${dependent(obstacle)}`
    notices.push({ level: 'warn', message: printable(message, 500) })
  }
  return { notices, withoutView }
}

/** Returns what is in the way; null: the view is changed. */
function changeView(
  alteration: Alteration,
  shape: ViewedTable,
  view: ArrayView,
  at: string,
): Rule<string | null> {
  return alteration.tried(function* () {
    yield* saveView(alteration.dialect, view, at)
    yield* makeArrayView(alteration, shape, view)
  })
}

/** The view with the former types of its columns, and with its new columns: what depends on it allows those. */
function withKeptTypes(
  { limits }: Dialect,
  known: ArrayView,
  changed: ArrayView,
  arrays: readonly ArrayValue[],
): ArrayView {
  const types = new Map(changed.elements.map(({ name, type }) => [name, type]))
  let elements: readonly Column[] = known.elements.map((element) =>
    types.get(element.name) === element.type ? element : { ...element, wide: true },
  )
  for (const { column, array } of arrays)
    if (column === changed.arrayColumn)
      elements = extendElements(elements, array, limits)?.elements ?? elements
  return { ...changed, elements }
}
