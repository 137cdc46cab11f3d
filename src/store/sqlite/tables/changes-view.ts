import { type Connection, quoted } from '../sql.ts'
import { tableName } from './declarations.ts'

// `orders_changes`: one row an event. A version's end is an event of its row in the history. Its beginning is one only where no
// kept version led to it: the item came, or an earlier version was not kept (`history: false`, or pruned).

const END = '_changes'

/** In the view's text, to tell it from a view of a user's. */
const MARK = '/* made by admin-mirror */'

/** What the view of a collection depends on; it never changes while the collection has rows. */
interface Shape {
  name: string
  keyColumns: readonly string[]
}

/** Creates the view, or replaces one of another version. Returns false where the name is a user's. */
export function ensureChangesView(connection: Connection, shape: Shape): boolean {
  const found = findView(connection, shape.name)
  const wanted = changesViewSql(shape)
  if (found?.sql === wanted) return true
  if (found && !isOurs(found)) return false
  if (found) connection.exec(`DROP VIEW ${quoted(shape.name + END)}`)
  connection.exec(wanted)
  return true
}

export function dropChangesView(connection: Connection, collection: string): void {
  const found = findView(connection, collection)
  if (found && isOurs(found)) connection.exec(`DROP VIEW ${quoted(collection + END)}`)
}

interface Found {
  type: string
  sql: string | null
}

function findView(connection: Connection, collection: string): Found | undefined {
  const find = connection.prepare('SELECT type, sql FROM sqlite_schema WHERE name = ? COLLATE NOCASE')
  return find.get(collection + END) as Found | undefined
}

function isOurs({ type, sql }: Found): boolean {
  return type === 'view' && sql?.includes(MARK) === true
}

/**
 * CREATE VIEW. Filters on `at` are pushed into each of the four parts, and each has an index for it. Each CAST declares a type:
 * DuckDB reads a column without one as bytes.
 */
function changesViewSql({ name, keyColumns }: Shape): string {
  const [raw, history] = [quoted(tableName(name, 'raw')), quoted(tableName(name, 'history'))]
  const keys = ['_organization_id', ...keyColumns].map(quoted)
  const same = (one: string, other: string) =>
    keys.map((key) => `${one}.${key} = ${other}.${key}`).join(' AND ')
  const columns = (row: string) => keys.map((key) => `${row}.${key} AS ${key}`).join(', ')
  const previous = (what: string) => `(
    SELECT ${what} FROM ${history} AS p
    WHERE ${same('p', 'h')} AND ${isBefore('p', 'h')}
    ORDER BY p."_valid_to" DESC, p._rowid_ DESC LIMIT 1
  )`
  const last = (what: string) => `(
    SELECT ${what} FROM ${history} AS p
    WHERE ${same('p', 'r')}
    ORDER BY p."_valid_to" DESC, p._rowid_ DESC LIMIT 1
  )`
  // Where the next version does not begin at this one's end, versions between them were not kept.
  const after = `nullif(coalesce(
    (
      SELECT iif(n."_valid_from" = h."_valid_to", n."_json", '') FROM ${history} AS n
      WHERE ${same('n', 'h')} AND ${isBefore('h', 'n')}
      ORDER BY n."_valid_to", n._rowid_ LIMIT 1
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
  return `CREATE VIEW ${quoted(name + END)} AS ${MARK}
SELECT ${columns('h')}, h."_reason" AS "change", h."_valid_to" AS "at", h."_changed_fields" AS "changed_fields",
  h."_json" AS "before", CAST(CASE h."_reason" WHEN 'changed' THEN ${after} END AS TEXT) AS "after"
FROM ${history} AS h
UNION ALL
SELECT ${columns('h')}, CAST(CASE
    WHEN h."_first_seen_at" < h."_valid_from" THEN 'changed'
    WHEN ${previous('1')} IS NULL THEN 'added'
    WHEN h."_first_seen_at" IS NULL AND ${previous('p."_reason"')} = 'changed' THEN 'changed'
    ELSE 'returned'
  END AS TEXT), h."_valid_from", NULL, NULL, h."_json"
FROM ${history} AS h
WHERE ${previous(`p."_reason" = 'changed' AND p."_valid_to" = h."_valid_from"`)} IS NOT 1
UNION ALL
SELECT ${columns('r')}, CAST(iif(${wasThereBefore}, 'returned', 'added') AS TEXT), r."_first_seen_at", NULL, NULL,
  CAST(iif(r."_changed_at" = r."_first_seen_at", r."_json", NULL) AS TEXT)
FROM ${raw} AS r
WHERE NOT ${beganInHistory}
UNION ALL
SELECT ${columns('r')}, 'changed', r."_changed_at", NULL, NULL, r."_json"
FROM ${raw} AS r
WHERE r."_changed_at" > r."_first_seen_at"
  AND ${last(`p."_reason" = 'changed' AND p."_valid_to" = r."_changed_at"`)} IS NOT 1`
}

/** Whether one version of an item ended before another one. */
function isBefore(one: string, other: string): string {
  return `(${one}."_valid_to", ${one}._rowid_) < (${other}."_valid_to", ${other}._rowid_)`
}
