import { isJsonObject } from '../../json/value.ts'
import {
  type Catalog,
  createCatalog,
  extendCatalog,
  identityOf,
  tableName,
  VIEW_KINDS,
  type ViewKind,
} from '../columns/catalog.ts'
import { type Column, type ColumnLimits, freeName, freeNames } from '../columns/column.ts'
import { type ArrayValue, fitsElements } from '../columns/row.ts'
import { type KnownColumns, saveColumns } from './known-columns.ts'
import { all, type Dialect, quoted, type Rule, SQL_TYPES } from './sql.ts'

// The views of a collection: `orders_raw`, `orders_versions`, `orders_changes`, and `orders__FIELD` of each array of objects.

/** Makes the views of a collection, or makes them anew. */
export function* makeViews(dialect: Dialect, { catalog, views }: KnownColumns): Rule<void> {
  for (const kind of VIEW_KINDS)
    yield* dialect.makeView(tableName(catalog.name, kind), SELECTS[kind](catalog))
  for (const [column, view] of views) yield* makeArrayView(dialect, catalog, column, view)
}

/** The names of the views of a collection. */
export function* viewNames(collection: string): Rule<string[]> {
  const arrays = yield* all<{ view: string }>(
    "SELECT DISTINCT view FROM sync_known_columns WHERE collection = :collection AND view <> ''",
    { collection },
  )
  return [...VIEW_KINDS.map((kind) => tableName(collection, kind)), ...arrays.map(({ view }) => view)]
}

const SELECTS: Record<ViewKind, (catalog: Catalog) => string> = {
  raw: ({ name, keys: columns }) => {
    const keys = identityOf(columns).map((key) => `t.${quoted(key)}`)
    return `SELECT ${keys.join(', ')}, j."_json", t."_first_seen_at", t."_changed_at"\nFROM ${live(name)}`
  },
  // New columns come last, since a server adds no others to a view that is read. The types of the first part are those of the view.
  versions: ({ name, keys: ofKey, values: columns }) => {
    const keys = identityOf(ofKey).map(quoted)
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
export function eventKeyNames(keys: readonly Column[], limits: ColumnLimits): string[] {
  const names = keys.map(({ name }) => name)
  return freeNames(names, EVENT_COLUMNS, limits)
}

const NO_TEXT = 'CAST(NULL AS TEXT)'

/**
 * One row per event: the beginning of each version that is kept, and the end of each that was not followed by another. Filters on `at` and
 * `seq` are pushed into the three parts, and each has an index for them. Each CAST declares a type: DuckDB reads a column of SQLite without one
 * as bytes, and SQLite merges the parts in the order of these indexes only if their columns have the same types; else it sorts all events.
 */
function selectChanges({ name, keys: columns, limits }: Catalog): string {
  const history = quoted(tableName(name, 'history'))
  const keys = identityOf(columns).map(quoted)
  const names = ['_organization_id', ...eventKeyNames(columns, limits)].map(quoted)
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

const NO_FIELDS = createCatalog([])

/** Whether the view of an array has all the columns that its elements need. An array without objects needs no view. */
export function fitsView(views: KnownColumns['views'], { column, array }: ArrayValue): boolean {
  return fitsElements(views.get(column) ?? NO_FIELDS, array)
}

/** Makes the views that these arrays need, or makes them anew. */
export function* growViews(
  dialect: Dialect,
  { catalog, views }: KnownColumns,
  arrays: readonly ArrayValue[],
  at: string,
): Rule<void> {
  const { name: collection, limits } = catalog
  for (const [arrayColumn, values] of Map.groupBy(arrays, ({ column }) => column)) {
    const known = views.get(arrayColumn)
    const elements = values.flatMap(({ array }) => array.filter(isJsonObject))
    const grown = extendCatalog(known ?? createCatalog([], limits), [], elements)
    if (grown.changed.length === 0) continue
    const name = known?.name ?? (yield* freeViewName(dialect, `${collection}__${arrayColumn}`))
    yield* saveColumns(dialect, { collection, view: name, arrayColumn, at }, grown.changed)
    yield* makeArrayView(dialect, catalog, arrayColumn, { ...grown.catalog, name })
  }
}

/** The name, cut to fit, and numbered where there is something of that name: another view, or a table of a user. */
function* freeViewName(dialect: Dialect, name: string): Rule<string> {
  const taken = new Set<string>()
  for (;;) {
    const free = freeName(name, (candidate) => taken.has(candidate), dialect.limits)
    if ((yield* dialect.taken([free])) === null) return free
    taken.add(free)
  }
}

/** The names of the key columns in the view of an array: `_parent_id`. */
export function parentNames(keys: readonly Column[], limits: ColumnLimits): string[] {
  const names = keys.map(({ name }) => `_parent_${name}`)
  return freeNames(names, [], limits)
}

function* makeArrayView(
  dialect: Dialect,
  { name: table, keys }: Catalog,
  arrayColumn: string,
  { name, values: fields }: Catalog,
): Rule<void> {
  const { elements, limits, declared } = dialect
  const parents = parentNames(keys, limits)
  const hasNul = fields.some(({ path }) => path.includes('\\u0000'))
  const columns = [
    't."_organization_id" AS "_organization_id"',
    ...keys.map((key, index) => `t.${quoted(key.name)} AS ${quoted(parents[index] ?? '')}`),
    `${elements.index} AS "_index"`,
    ...fields.map(
      (column) =>
        `CAST(${elements.value(column.type, column.path)} AS ${declared(SQL_TYPES[column.type])}) AS ${quoted(column.name)}`,
    ),
  ]
  const from = `${quoted(table)} AS t${elements.from(`t.${quoted(arrayColumn)}`, hasNul)}`
  yield* dialect.makeView(name, `SELECT\n  ${columns.join(',\n  ')}\nFROM ${from}`)
}
