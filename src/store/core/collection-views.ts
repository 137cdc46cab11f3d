import { type TableShape, tableName, VIEW_KINDS, type ViewKind, viewName } from '../columns/catalog.ts'
import { type ColumnLimits, columnName, foldName, parseSqlitePath } from '../columns/column.ts'
import { type ArrayView, parentNames } from '../columns/elements.ts'
import { loadArrayViews, OF_VIEWS } from './catalogs.ts'
import { type Dialect, exec, quoted, type Rule, run, SQL_TYPES } from './sql.ts'

// The views of a collection: `orders_raw`, `orders_versions`, `orders_changes`, and `orders__FIELD` of each array of objects.

/** The SELECT of each view. */
const SELECTS: Record<ViewKind, (dialect: Dialect, shape: TableShape) => string> = {
  raw: selectRaw,
  versions: selectVersions,
  changes: selectChanges,
}

/** Makes the views of a collection, or makes them anew. Leaves what a user has under one of their names. */
export function* makeViews(dialect: Dialect, shape: TableShape): Rule<void> {
  for (const kind of VIEW_KINDS) {
    const view = viewName(shape.name, kind)
    if (!(yield* isTaken(dialect, view))) yield* dialect.makeView(view, SELECTS[kind](dialect, shape))
  }
  for (const view of yield* loadArrayViews(dialect, shape.name))
    if (!(yield* isTaken(dialect, view.name))) yield* makeArrayView(dialect, shape, view)
}

/** The views of a collection that are there and are ours. */
export function* ownViews(dialect: Dialect, collection: string): Rule<string[]> {
  const arrays = yield* loadArrayViews(dialect, collection)
  const names = [...VIEW_KINDS.map((kind) => viewName(collection, kind)), ...arrays.map(({ name }) => name)]
  const own: string[] = []
  for (const name of names) if (yield* dialect.isOwnView(name)) own.push(name)
  return own
}

/** Drops the views of a collection, and deletes what is known of their columns. */
export function* dropViews(dialect: Dialect, collection: string): Rule<void> {
  yield* exec((yield* ownViews(dialect, collection)).map((name) => `DROP VIEW ${quoted(name)}`))
  yield* run(`DELETE FROM sync_view_columns WHERE ${OF_VIEWS}`, { collection })
}

/** A table or view that we did not create belongs to a user, who may have put it in the place of ours. */
export function* isTaken(dialect: Dialect, name: string): Rule<boolean> {
  return (yield* dialect.relationNamed([name])) !== null && !(yield* dialect.isOwnView(name))
}

/** The live rows `t` with their JSON, as `j`. */
function live(name: string): string {
  return `${quoted(tableName(name, 'json'))} AS j JOIN ${quoted(name)} AS t ON t."_row" = j."_row"`
}

function selectRaw(_dialect: Dialect, { name, keyColumns }: TableShape): string {
  const keys = ['_organization_id', ...keyColumns].map((key) => `t.${quoted(key)}`)
  return `SELECT ${keys.join(', ')}, j."_json", t."_first_seen_at", t."_changed_at"\nFROM ${live(name)}`
}

/** New columns come last, since a server adds no others to a view that is read. The types of the first part are those of the view. */
function selectVersions(_dialect: Dialect, { name, keyColumns, columns }: TableShape): string {
  const keys = ['_organization_id', ...keyColumns].map(quoted)
  const values = columns.map((column) => quoted(column.name))
  return `SELECT ${[...keys, '"_valid_from"', '"_valid_to"', ...values].join(', ')}
FROM ${quoted(tableName(name, 'history'))}
UNION ALL
SELECT ${[...keys, '"_changed_at"', 'NULL', ...values].join(', ')}
FROM ${quoted(name)}`
}

/** The columns of an event beside the key. A query on events means the same in every mirror: a key of such a name gets the next free one (`at_2`). */
const EVENT_COLUMNS = ['seq', 'change', 'at', 'changed_fields', 'before', 'after']

/** The names of the key columns in `orders_changes`. */
export function eventKeyNames(keyColumns: readonly string[], limits: ColumnLimits): string[] {
  const taken = new Set(EVENT_COLUMNS)
  const own = new Set(keyColumns.map(foldName))
  return keyColumns.map((key) => {
    const isUsed = (name: string) => taken.has(foldName(name)) || own.has(foldName(name))
    const name = taken.has(foldName(key)) ? columnName([key], isUsed, limits) : key
    taken.add(foldName(name))
    return name
  })
}

const NO_TEXT = 'CAST(NULL AS TEXT)'

/**
 * One row per event: the beginning of each version that is kept, and the end of each that was not followed by another. Filters on `at` and
 * `seq` are pushed into the three parts, and each has an index for them. Each CAST declares a type: DuckDB reads a column of SQLite without one
 * as bytes, and SQLite merges the parts in the order of these indexes only if their columns have the same types; else it sorts all events.
 */
function selectChanges({ limits }: Dialect, { name, keyColumns }: TableShape): string {
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

/** Makes the view of an array, or makes it anew. */
export function* makeArrayView(
  dialect: Dialect,
  { name: table, keyColumns }: Pick<TableShape, 'name' | 'keyColumns'>,
  view: ArrayView,
): Rule<void> {
  const { elements, limits, declared } = dialect
  const parents = parentNames(keyColumns, limits)
  const hasNul = view.elements.some(({ path }) => parseSqlitePath(path).some((name) => name.includes('\0')))
  const columns = [
    't."_organization_id" AS "_organization_id"',
    ...keyColumns.map((key, index) => `t.${quoted(key)} AS ${quoted(parents[index] ?? '')}`),
    `${elements.index} AS "_index"`,
    ...view.elements.map(
      ({ name, type, path }) =>
        `CAST(${elements.value(type, path, hasNul)} AS ${declared(SQL_TYPES[type])}) AS ${quoted(name)}`,
    ),
  ]
  const select = `SELECT\n  ${columns.join(',\n  ')}\nFROM ${quoted(table)} AS t${elements.from(`t.${quoted(view.arrayColumn)}`)}`
  yield* dialect.makeView(view.name, select)
}
