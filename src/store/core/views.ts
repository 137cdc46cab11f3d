import { isJsonObject } from '../../json/value.ts'
import type { Notice } from '../../sync/types.ts'
import {
  type Catalog,
  createCatalog,
  extendCatalog,
  type TableShape,
  tableName,
  VIEW_KINDS,
  type ViewKind,
} from '../columns/catalog.ts'
import {
  type Column,
  type ColumnLimits,
  columnType,
  foldName,
  freeName,
  freeNames,
} from '../columns/column.ts'
import { type ArrayValue, fitsElements } from '../columns/row.ts'
import { all, type Dialect, exec, quoted, type Rule, run, SQL_TYPES } from './sql.ts'

// The views of a collection: `orders_raw`, `orders_versions`, `orders_changes`, and `orders__FIELD` of each array of objects, whose columns are in
// `sync_view_columns`.

/** The view of an array of objects: `orders__items`. */
export interface ArrayView {
  name: string
  arrayColumn: string
  /** The fields of its elements. What does not fit their types is null in the view. */
  catalog: Catalog
}

/** The views of a collection's arrays, by their columns. */
export type ArrayViews = ReadonlyMap<string, ArrayView>

/** Makes the views of a collection, or makes them anew. */
export function* makeViews(dialect: Dialect, shape: TableShape): Rule<void> {
  for (const kind of VIEW_KINDS)
    yield* makeView(dialect, tableName(shape.name, kind), SELECTS[kind](shape, dialect.limits))
  for (const view of (yield* loadArrayViews(dialect, shape.name)).values())
    yield* makeArrayView(dialect, shape, view)
}

/** Leaves a table that a user has put in the place of a view. */
function* makeView(dialect: Dialect, name: string, select: string): Rule<void> {
  const found = yield* dialect.relationNamed([name])
  if (!found || found.kind === 'view') yield* dialect.makeView(name, select)
}

/** The names of the views of a collection. */
export function* viewNames(dialect: Dialect, collection: string): Rule<string[]> {
  const arrays = (yield* loadArrayViews(dialect, collection)).values()
  return [...VIEW_KINDS.map((kind) => tableName(collection, kind)), ...Array.from(arrays, ({ name }) => name)]
}

/** Drops the views of a collection, and deletes what is known of their columns. */
export function* dropViews(dialect: Dialect, collection: string): Rule<void> {
  const names = yield* viewNames(dialect, collection)
  yield* exec(names.map((name) => `DROP VIEW IF EXISTS ${quoted(name)}`))
  yield* run(`DELETE FROM sync_view_columns WHERE ${OF_VIEWS}`, { collection })
}

const SELECTS: Record<ViewKind, (shape: TableShape, limits: ColumnLimits) => string> = {
  raw: ({ name, keyColumns }) => {
    const keys = ['_organization_id', ...keyColumns].map((key) => `t.${quoted(key)}`)
    return `SELECT ${keys.join(', ')}, j."_json", t."_first_seen_at", t."_changed_at"\nFROM ${live(name)}`
  },
  // New columns come last, since a server adds no others to a view that is read. The types of the first part are those of the view.
  versions: ({ name, keyColumns, columns }) => {
    const keys = ['_organization_id', ...keyColumns].map(quoted)
    const values = columns.map((column) => quoted(column.name))
    return `SELECT ${[...keys, '"_valid_from"', '"_valid_to"', ...values].join(', ')}
FROM ${quoted(tableName(name, 'history'))}
UNION ALL
SELECT ${[...keys, '"_changed_at"', 'NULL', ...values].join(', ')}
FROM ${quoted(name)}`
  },
  changes: selectChanges,
}

/** The live rows `t` with their JSON, as `j`. */
function live(name: string): string {
  return `${quoted(tableName(name, 'json'))} AS j JOIN ${quoted(name)} AS t ON t."_row" = j."_row"`
}

/** The columns of an event beside the key. A query on events means the same in every mirror: a key of such a name gets the next free one (`at_2`). */
const EVENT_COLUMNS = ['seq', 'change', 'at', 'changed_fields', 'before', 'after']

/** The names of the key columns in `orders_changes`. */
export function eventKeyNames(keyColumns: readonly string[], limits: ColumnLimits): string[] {
  const isTaken = (key: string) => EVENT_COLUMNS.includes(foldName(key))
  const others = freeNames(keyColumns.filter(isTaken), [...EVENT_COLUMNS, ...keyColumns], limits)
  return keyColumns.map((key) => (isTaken(key) ? (others.shift() ?? key) : key))
}

const NO_TEXT = 'CAST(NULL AS TEXT)'

/**
 * One row per event: the beginning of each version that is kept, and the end of each that was not followed by another. Filters on `at` and
 * `seq` are pushed into the three parts, and each has an index for them. Each CAST declares a type: DuckDB reads a column of SQLite without one
 * as bytes, and SQLite merges the parts in the order of these indexes only if their columns have the same types; else it sorts all events.
 */
function selectChanges({ name, keyColumns }: TableShape, limits: ColumnLimits): string {
  const history = quoted(tableName(name, 'history'))
  const keys = ['_organization_id', ...keyColumns].map(quoted)
  const names = ['_organization_id', ...eventKeyNames(keyColumns, limits)].map(quoted)
  const keysOf = (row: string) => keys.map((key, index) => `${row}.${key} AS ${names[index]}`).join(', ')
  // The version that ended with the event by which this one began.
  const before = (row: string, began: string) => `CAST(CASE ${began}."_change" WHEN 'changed' THEN (
    SELECT p."_json" FROM ${history} AS p
    WHERE ${keys.map((key) => `p.${key} = ${row}.${key}`).join(' AND ')} AND p."_ended_seq" = ${began}."_seq"
  ) END AS TEXT)`
  return `SELECT j."_seq" AS "seq", ${keysOf('t')}, j."_change" AS "change", t."_changed_at" AS "at", j."_changed_fields" AS "changed_fields",
  ${before('t', 'j')} AS "before", j."_json" AS "after"
FROM ${live(name)}
UNION ALL
SELECT h."_seq", ${keysOf('h')}, h."_change", h."_valid_from", h."_changed_fields",
  ${before('h', 'h')}, h."_json"
FROM ${history} AS h
UNION ALL
SELECT h."_ended_seq", ${keysOf('h')}, h."_reason", h."_valid_to", ${NO_TEXT},
  h."_json", ${NO_TEXT}
FROM ${history} AS h
WHERE h."_reason" <> 'changed'`
}

/** A condition on `view`: it is of this collection, since no collection's name has two underscores. */
const OF_VIEWS = `substr(view, 1, length(:collection::text) + 2) = :collection::text || '__'`

export function* loadArrayViews({ sequence, limits }: Dialect, collection: string): Rule<ArrayViews> {
  const rows = yield* all<Pick<Column, 'name' | 'path' | 'type'> & { view: string; arrayColumn: string }>(
    `
      SELECT view, array_column AS "arrayColumn", "column" AS name, path, type
      FROM sync_view_columns
      WHERE ${OF_VIEWS}
      ORDER BY ${sequence}
    `,
    { collection },
  )
  const views = new Map<string, ArrayView>()
  for (const [arrayColumn, fields] of Map.groupBy(rows, (row) => row.arrayColumn)) {
    const columns = fields.map(
      ({ name, path, type }): Column => ({ name, path, type: columnType(type), role: 'value', wide: false }),
    )
    const catalog = createCatalog(columns, [], limits)
    views.set(arrayColumn, { name: fields[0]?.view ?? '', arrayColumn, catalog })
  }
  return views
}

const NO_FIELDS = createCatalog([], [])

/** Whether the view of an array has all the columns that its elements need. An array without objects needs no view. */
export function fitsView(views: ArrayViews, { column, array }: ArrayValue): boolean {
  return fitsElements(views.get(column)?.catalog ?? NO_FIELDS, array)
}

const SAVED_FIELDS = { name: 'text', path: 'text', type: 'text' }

/** Makes the views that these arrays need, or makes them anew. */
export function* growViews(
  dialect: Dialect,
  shape: TableShape,
  arrays: readonly ArrayValue[],
): Rule<Notice[]> {
  const { limits } = dialect
  const views = yield* loadArrayViews(dialect, shape.name)
  const notices: Notice[] = []
  const line = dialect.lines(SAVED_FIELDS)
  for (const [arrayColumn, values] of Map.groupBy(arrays, ({ column }) => column)) {
    const known = views.get(arrayColumn)
    const elements = values.flatMap(({ array }) => array.filter(isJsonObject))
    const grown = extendCatalog(known?.catalog ?? createCatalog([], [], limits), [], elements)
    if (grown.changes.length === 0) continue
    const name = known?.name ?? (yield* freeViewName(dialect, `${shape.name}__${arrayColumn}`))
    yield* line.run(
      `
        INSERT INTO sync_view_columns ("column", path, type, view, array_column)
        ${line.rows([...Object.keys(SAVED_FIELDS).map(line.value), ':name::text', ':arrayColumn::text'])}
        ON CONFLICT (view, "column") DO UPDATE SET type = excluded.type
      `,
      grown.changes.map(({ column }) => [column.name, column.path, column.type]),
      { name, arrayColumn },
    )
    yield* makeArrayView(dialect, shape, { name, arrayColumn, catalog: grown.catalog })
    for (const { level, message } of grown.notices)
      if (level === 'warn') notices.push({ level, message: `${name}: ${message}` })
  }
  return notices
}

/** The name, cut to fit, and numbered where there is something of that name: another view, or a table of a user. */
function* freeViewName(dialect: Dialect, name: string): Rule<string> {
  const taken = new Set<string>()
  for (;;) {
    const free = freeName(name, (candidate) => taken.has(candidate), dialect.limits)
    if ((yield* dialect.relationNamed([free])) === null) return free
    taken.add(free)
  }
}

/** The names of the key columns in the view of an array: `_parent_id`. */
export function parentNames(keyColumns: readonly string[], limits: ColumnLimits): string[] {
  return freeNames(
    keyColumns.map((key) => `_parent_${key}`),
    [],
    limits,
  )
}

export function* makeArrayView(
  dialect: Dialect,
  { name: table, keyColumns }: TableShape,
  { name, arrayColumn, catalog }: ArrayView,
): Rule<void> {
  const { elements, limits, declared } = dialect
  const parents = parentNames(keyColumns, limits)
  const hasNul = catalog.columns.some(({ path }) => path.includes('\\u0000'))
  const columns = [
    't."_organization_id" AS "_organization_id"',
    ...keyColumns.map((key, index) => `t.${quoted(key)} AS ${quoted(parents[index] ?? '')}`),
    `${elements.index} AS "_index"`,
    ...catalog.columns.map(
      (column) =>
        `CAST(${elements.value(column.type, column.path, hasNul)} AS ${declared(SQL_TYPES[column.type])}) AS ${quoted(column.name)}`,
    ),
  ]
  const from = `${quoted(table)} AS t${elements.from(`t.${quoted(arrayColumn)}`)}`
  yield* makeView(dialect, name, `SELECT\n  ${columns.join(',\n  ')}\nFROM ${from}`)
}
