import type { TableShape } from '../columns/catalog.ts'
import { tableName } from '../columns/catalog.ts'
import { columnName, foldName, SQLITE_LIMITS } from '../columns/column.ts'
import { type Dialect, quoted } from './sql.ts'

// `orders_changes`: one row per event. The end of a version is an event. The beginning of one is an event only if no other version that is
// kept ends there: the item was added or came back, or the version before was not kept (`history: false`, or pruned).

/** The first column of `orders_changes`. */
export const SEQ = 'seq'

/** The columns of `orders_changes` behind the key. */
export const EVENT_COLUMNS = ['change', 'at', 'changed_fields', 'before', 'after']

/** The names of all columns of an event beside the key. */
const EVENT_NAMES: readonly string[] = [SEQ, ...EVENT_COLUMNS]

/**
 * The names of the key columns in `orders_changes`: a key that has the name of a column of an event gets the next free one
 * (`at_2`), so that a query on events means the same in every mirror.
 */
export function eventKeyNames(keyColumns: readonly string[], limits = SQLITE_LIMITS): string[] {
  const taken = new Set(EVENT_NAMES)
  const own = new Set(keyColumns.map(foldName))
  return keyColumns.map((key) => {
    const name = taken.has(foldName(key))
      ? columnName([key], (one) => taken.has(foldName(one)) || own.has(foldName(one)), limits)
      : key
    taken.add(foldName(name))
    return name
  })
}

const NO_TEXT = 'CAST(NULL AS TEXT)'

/**
 * The SELECT of the view. Filters on `at` and `seq` are pushed into each of the four parts, and each has an index for them. Each CAST
 * declares a type: DuckDB reads a column of SQLite without one as bytes, and SQLite merges the parts in the order of these indexes only if
 * their columns have the same types; else it sorts all events before the first one.
 */
export function selectChanges(
  { limits, versionSequence: order }: Pick<Dialect, 'limits' | 'versionSequence'>,
  { name, keyColumns }: Pick<TableShape, 'name' | 'keyColumns'>,
): string {
  const [raw, history] = [quoted(tableName(name, 'raw')), quoted(tableName(name, 'history'))]
  const keys = ['_organization_id', ...keyColumns].map(quoted)
  const names = ['_organization_id', ...eventKeyNames(keyColumns, limits)].map(quoted)
  const isBefore = (one: string, other: string) =>
    `(${one}."_valid_to", ${one}.${order}) < (${other}."_valid_to", ${other}.${order})`
  const same = (one: string, other: string) =>
    keys.map((key) => `${one}.${key} = ${other}.${key}`).join(' AND ')
  const columns = (row: string) => keys.map((key, index) => `${row}.${key} AS ${names[index]}`).join(', ')
  const previous = (what: string) => `(
    SELECT ${what} FROM ${history} AS p
    WHERE ${same('p', 'h')} AND ${isBefore('p', 'h')}
    ORDER BY p."_valid_to" DESC, p.${order} DESC LIMIT 1
  )`
  const last = (what: string) => `(
    SELECT ${what} FROM ${history} AS p
    WHERE ${same('p', 'r')}
    ORDER BY p."_valid_to" DESC, p.${order} DESC LIMIT 1
  )`
  // Where the next version does not begin at this one's end, versions between them were not kept.
  const after = `nullif(coalesce(
    (
      SELECT CASE WHEN n."_valid_from" = h."_valid_to" THEN n."_json" ELSE '' END FROM ${history} AS n
      WHERE ${same('n', 'h')} AND ${isBefore('h', 'n')}
      ORDER BY n."_valid_to", n.${order} LIMIT 1
    ),
    (SELECT r."_json" FROM ${raw} AS r WHERE ${same('r', 'h')} AND r."_changed_at" = h."_valid_to")
  ), '')`
  // A version of an earlier life of the item does not count: the item was removed after it.
  const beganInHistory = `EXISTS (
    SELECT 1 FROM ${history} AS x
    WHERE ${same('x', 'r')} AND x."_valid_from" = r."_first_seen_at" AND x."_reason" = 'changed' AND NOT EXISTS (
      SELECT 1 FROM ${history} AS y
      WHERE ${same('y', 'r')} AND y."_reason" <> 'changed' AND ${isBefore('x', 'y')}
    )
  )`
  const wasThereBefore = `EXISTS (
    SELECT 1 FROM ${history} AS x
    WHERE ${same('x', 'r')} AND x."_valid_to" <= r."_first_seen_at"
      AND (x."_reason" <> 'changed' OR x."_valid_from" < r."_first_seen_at")
  )`
  return `SELECT h."_valid_to_seq" AS "seq", ${columns('h')}, h."_reason" AS "change", h."_valid_to" AS "at", h."_changed_fields" AS "changed_fields",
  h."_json" AS "before", CAST(CASE h."_reason" WHEN 'changed' THEN ${after} END AS TEXT) AS "after"
FROM ${history} AS h
UNION ALL
SELECT h."_valid_from_seq", ${columns('h')}, CAST(CASE
    WHEN h."_first_seen_at" < h."_valid_from" THEN 'changed'
    WHEN ${previous('1')} IS NULL THEN 'added'
    ELSE 'returned'
  END AS TEXT), h."_valid_from", ${NO_TEXT}, ${NO_TEXT}, h."_json"
FROM ${history} AS h
WHERE ${previous(`p."_reason" = 'changed' AND p."_valid_to" = h."_valid_from"`)} IS NOT TRUE
UNION ALL
SELECT r."_first_seen_seq", ${columns('r')}, CAST(CASE WHEN ${wasThereBefore} THEN 'returned' ELSE 'added' END AS TEXT), r."_first_seen_at", ${NO_TEXT}, ${NO_TEXT},
  CAST(CASE WHEN r."_changed_at" = r."_first_seen_at" THEN r."_json" END AS TEXT)
FROM ${raw} AS r
WHERE NOT ${beganInHistory}
UNION ALL
SELECT r."_changed_seq", ${columns('r')}, CAST('changed' AS TEXT), r."_changed_at", ${NO_TEXT}, ${NO_TEXT}, r."_json"
FROM ${raw} AS r
WHERE r."_changed_at" > r."_first_seen_at"
  AND ${last(`p."_reason" = 'changed' AND p."_valid_to" = r."_changed_at"`)} IS NOT TRUE`
}
