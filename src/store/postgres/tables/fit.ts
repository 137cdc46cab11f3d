import type { JsonObject } from '../../../json/value.ts'
import type { KeyPart } from '../../../sync/items.ts'
import type { Notice } from '../../../sync/types.ts'
import { printable } from '../../../text.ts'
import { type Catalog, fitsKeys, keyTypesOf, splitKey } from '../../columns/catalog.ts'
import type { Column, ColumnChange } from '../../columns/column.ts'
import { type ArrayView, type ExtendedElements, extendElements, sentAtOf } from '../../columns/elements.ts'
import { extendCatalog, noticesOf } from '../../columns/extend.ts'
import { type ArrayValue, toRow } from '../../columns/row.ts'
import { arrayViewName } from '../../columns/view-names.ts'
import { addColumnSql } from '../../core/declarations.ts'
import { exec, KINDS, SQL_TYPES, tableName } from '../../core/sql.ts'
import { type ConfiguredCollection, loadCatalog, saveColumns } from '../../core/tables.ts'
import { POSTGRES, runRule } from '../driver.ts'
import type { Server } from '../server/server.ts'
import { POSTGRES_LIMITS, quoted, type Sql, storableJson } from '../sql.ts'
import { changingTypes, DependentError, triedWith, withoutDependents } from './dependents.ts'
import { loadViews, saveView } from './records.ts'
import { type FittedRow, withinPage } from './row-size.ts'
import { keyNames } from './shape.ts'
import { VIEW_MARK, viewSelect, viewSql } from './view.ts'

/** Items that are to be stored, and the keys of all items of their page. */
export interface WantedItems {
  keys: readonly (readonly KeyPart[])[]
  items: readonly JsonObject[]
}

/** The typed rows of the items; null if the columns or the views have to be extended first. */
export function typedRows(
  catalog: Catalog,
  views: ReadonlyMap<string, ArrayView>,
  strangers: ReadonlySet<string>,
  { keys, items }: WantedItems,
): FittedRow[] | null {
  if (!fitsKeys(keyTypesOf(catalog), keys)) return null
  const rows: FittedRow[] = []
  for (const item of items) {
    const row = toRow(catalog, item)
    if (!row || row.arrays.some((array) => extendedView(views, strangers, array) !== null)) return null
    // The strings of a list have to be storable once a view reads them.
    for (const { column } of row.arrays) row.values.set(column, storableJson(String(row.values.get(column))))
    rows.push(withinPage(catalog, row))
  }
  return rows
}

const NO_ELEMENTS: readonly Column[] = []

/** The elements of a view with those of this array; null if it has them all. */
function extendedView(
  views: ReadonlyMap<string, ArrayView>,
  strangers: ReadonlySet<string>,
  { column, array }: ArrayValue,
): ExtendedElements | null {
  if (strangers.has(column)) return null
  return extendElements(views.get(column)?.elements ?? NO_ELEMENTS, array, POSTGRES_LIMITS)
}

export interface FitOptions {
  server: Server
  collection: ConfiguredCollection
  isFullReported: boolean
  /** ISO 8601. */
  at: string
}

export interface Fitting {
  notices: Notice[]
  isFullReported: boolean
  /** Columns whose arrays get no view, since its name is taken, or no other one than they have. */
  strangers: Set<string>
}

/** Changes columns and views so that they can hold these items, in a transaction of its own before the rows are written. */
export function fitTables(
  { server, collection: configured, isFullReported, at }: FitOptions,
  { keys, items }: WantedItems,
): Promise<Fitting> {
  const { name: collection } = configured
  return server.transaction(async (sql) => {
    // One worker at a time changes a collection; the others then find what they need.
    const found = await sql.rows('SELECT 1 FROM sync_collections WHERE name = $1 FOR UPDATE', [collection])
    if (found.length === 0) throw new Error(`${collection} has no tables`)
    const load = () => runRule(sql, loadCatalog(POSTGRES, configured, isFullReported))
    const first = extendCatalog(await load(), keys, items)
    const refused = await changeTypes(sql, collection, first.changes)
    const extension = refused.length === 0 ? first : extendCatalog(await load(), keys, items)
    const { catalog, changes } = extension
    const notices = [...refused, ...noticesOf(extension)]
    const keyColumns = keyNames(splitKey(configured.key))
    await changeColumns(sql, collection, changes, at)
    const arrays = items.flatMap((item) => toRow(catalog, item)?.arrays ?? [])
    const strangers = await extendViews(sql, {
      collection,
      keyColumns,
      catalog,
      changes,
      arrays,
      notices,
      at,
    })
    await sql.rows('UPDATE sync_collections SET version = version + 1 WHERE name = $1', [collection])
    return { notices, isFullReported: catalog.isFullReported, strangers }
  })
}

/** Makes columns REAL, or keeps their types where something of a user depends on them: fractions go beside them. Returns what to report. */
async function changeTypes(
  sql: Sql,
  collection: string,
  changes: readonly ColumnChange[],
): Promise<Notice[]> {
  const columns = changes.flatMap(({ kind, column }) =>
    kind === 'type' && column.role !== 'key' ? [column] : [],
  )
  if (columns.length === 0) return []
  const names = columns.map(({ name }) => name)
  const obstacle = await changingTypes(sql, tablesOf(collection), names, () =>
    sql.exec(alterSql(collection, columns)),
  )
  if (obstacle === null) return []
  await sql.rows('UPDATE sync_known_columns SET wide = 1 WHERE collection = $1 AND "column" = ANY ($2)', [
    collection,
    names,
  ])
  const message = `${names.join(', ')} of ${collection} cannot hold fractions, since ${obstacle} depends on it and could not be made again as it is: they go to NAME__text`
  return [{ level: 'warn', message: printable(message, 500) }]
}

function tablesOf(collection: string): string[] {
  return KINDS.map((kind) => tableName(collection, kind))
}

/** All three tables have the key columns, made as INTEGER before their type was known. */
async function changeColumns(
  sql: Sql,
  collection: string,
  changes: readonly ColumnChange[],
  at: string,
): Promise<void> {
  if (changes.length === 0) return
  const columns = changes.map(({ column }) => column)
  await runRule(sql, saveColumns(POSTGRES, collection, columns, at))
  const added = changes.filter(({ kind, column }) => kind === 'add' && column.role !== 'key')
  if (added.length > 0)
    await runRule(sql, exec(added.flatMap(({ column }) => addColumnSql(POSTGRES, collection, column))))
  const keys = columns.filter(({ role }) => role === 'key')
  const statements: string[] = []
  for (const table of tablesOf(collection)) {
    const types = await runRule(sql, POSTGRES.columnTypes(table))
    const due = keys.filter(({ name, type }) => types.get(name) !== SQL_TYPES[type])
    if (due.length > 0) statements.push(alterSql(table, due))
  }
  if (statements.length === 0) return
  const names = keys.map(({ name }) => name)
  const obstacle = await changingTypes(sql, tablesOf(collection), names, () =>
    sql.exec(statements.join(';\n')),
  )
  // A key has no column beside it for what does not fit.
  if (obstacle !== null) throw new DependentError(obstacle)
}

function alterSql(table: string, columns: readonly ColumnChange['column'][]): string {
  const changes = columns.map(
    ({ name, type }) =>
      `ALTER COLUMN ${quoted(name)} TYPE ${SQL_TYPES[type]} USING ${quoted(name)}::${SQL_TYPES[type]}`,
  )
  return `ALTER TABLE ${quoted(table)} ${changes.join(', ')}`
}

interface ViewWork {
  collection: string
  keyColumns: readonly string[]
  catalog: Catalog
  /** Made already. */
  changes: readonly ColumnChange[]
  arrays: readonly ArrayValue[]
  notices: Notice[]
  at: string
}

async function extendViews(
  sql: Sql,
  { collection, keyColumns, catalog, changes, arrays, notices, at }: ViewWork,
): Promise<Set<string>> {
  const views = await loadViews(sql, collection)
  const strangers = new Set<string>()
  /** As it is known already, of each view that changes. */
  const due = new Map<string, ArrayView | undefined>()
  // From now on these views tell lists from texts that read like one.
  const wide = changes.filter(({ kind }) => kind === 'wide').map(({ column }) => column.name)
  for (const [column, view] of views)
    if (wide.includes(column) && !(await isTaken(sql, view.name))) due.set(column, view)
  for (const array of arrays) {
    const { column } = array
    const extended = extendedView(views, strangers, array)
    if (!extended) continue
    const known = views.get(column)
    const others = [...views.values()].map((view) => view.name)
    const name = known?.name ?? arrayViewName(collection, column, others, POSTGRES_LIMITS)
    if (await isTaken(sql, name)) {
      strangers.add(column)
      notices.push({ level: 'warn', message: `the name ${name} is taken, so there is no view of that array` })
      continue
    }
    const own = catalog.columns.find((one) => one.name === column)
    const sentAt = own ? sentAtOf(own) : null
    views.set(column, { name, arrayColumn: column, elements: extended.elements, sentAt })
    if (!due.has(column)) due.set(column, known)
    for (const { message } of extended.warnings)
      notices.push({ level: 'warn', message: `${name}: ${message}` })
  }
  const shape = { collection, keyColumns, at }
  for (const [column, known] of due) {
    const view = views.get(column)
    if (!view) continue
    const obstacle = await changeView(sql, shape, view)
    if (obstacle === null) continue
    const kept = known && withKeptTypes(known, view, arrays)
    const isKept = kept !== undefined && (await changeView(sql, shape, kept)) === null
    const dependent = `since ${obstacle} depends on it and could not be made again as it is`
    if (!isKept) strangers.add(column)
    const message = isKept
      ? `columns of ${view.name} cannot hold fractions, ${dependent}: they go to NAME__text`
      : `the view ${view.name} stays as it was, ${dependent}: drop that, and run "admin-mirror rebuild ${collection}"`
    notices.push({ level: 'warn', message: printable(message, 500) })
  }
  return strangers
}

/** Returns what is in the way; null: the view is changed. */
function changeView(
  sql: Sql,
  { collection, keyColumns, at }: Pick<ViewWork, 'collection' | 'keyColumns' | 'at'>,
  view: ArrayView,
): Promise<string | null> {
  return triedWith(sql, async () => {
    await saveView(sql, view, at)
    await replaceView(sql, collection, keyColumns, view)
  })
}

/** The view with the types that its columns had: a column that is only added is in nobody's way. */
function withKeptTypes(known: ArrayView, changed: ArrayView, arrays: readonly ArrayValue[]): ArrayView {
  const types = new Map(changed.elements.map(({ name, type }) => [name, type]))
  let elements: readonly Column[] = known.elements.map((one) =>
    types.get(one.name) === one.type ? one : { ...one, wide: true },
  )
  for (const { column, array } of arrays)
    if (column === changed.arrayColumn)
      elements = extendElements(elements, array, POSTGRES_LIMITS)?.elements ?? elements
  return { ...changed, elements }
}

/** A table or view that we did not create belongs to a user, who may have put it in the place of ours. */
export async function isTaken(sql: Sql, name: string): Promise<boolean> {
  const found = await sql.rows(
    "SELECT 1 FROM pg_class WHERE oid = to_regclass($1) AND (relkind <> 'v' OR strpos(pg_get_viewdef(oid), $2) = 0)",
    [quoted(name), VIEW_MARK],
  )
  return found.length > 0
}

/** Leaves all that depends on the view as it is where only columns are added; else views of users that read it are made again with it. */
export async function replaceView(
  sql: Sql,
  collection: string,
  keyColumns: readonly string[],
  view: ArrayView,
): Promise<void> {
  const name = quoted(view.name)
  const select = viewSelect(collection, keyColumns, view)
  const [found] = await sql.rows<{ options: string }>(
    "SELECT coalesce(' WITH (' || array_to_string(reloptions, ', ') || ')', '') AS options FROM pg_class WHERE oid = to_regclass($1)",
    [name],
  )
  const inPlace = () => sql.exec(`CREATE OR REPLACE VIEW ${name}${found?.options} AS\n${select}`)
  if (found && (await triedWith(sql, inPlace)) === null) return
  await withoutDependents(sql, [view.name], async () => {
    await sql.exec(`DROP VIEW IF EXISTS ${name}`)
    await sql.exec(viewSql(collection, keyColumns, view))
  })
}
