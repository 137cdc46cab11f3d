import { eventKeyNames } from '../../columns/event-keys.ts'
import { cutName, literal, POSTGRES_LIMITS, quoted } from '../sql.ts'

// `orders_changes`: one row an event. A version's end is an event of its row in the history. Its beginning is one only where no
// kept version led to it: the item came, or an earlier version was not kept (`history: false`, or pruned).

const END = '_changes'

export function changesViewName(collection: string): string {
  return cutName(collection, END.length) + END
}

/** CREATE VIEW, with its comment. */
export function changesViewSql(name: string, keyColumns: readonly string[]): string {
  const [raw, history] = [quoted(`${name}_raw`), quoted(`${name}_history`)]
  const keys = ['_organization_id', ...keyColumns].map(quoted)
  const same = (one: string, other: string) =>
    keys.map((key) => `${one}.${key} = ${other}.${key}`).join(' AND ')
  const names = ['_organization_id', ...eventKeyNames(keyColumns, POSTGRES_LIMITS)].map(quoted)
  const columns = (row: string) => keys.map((key, index) => `${row}.${key} AS ${names[index]}`).join(', ')
  const previous = (what: string) => `(
    SELECT ${what} FROM ${history} AS p
    WHERE ${same('p', 'h')} AND ${isBefore('p', 'h')}
    ORDER BY p."_valid_to" DESC, p."_sequence" DESC LIMIT 1
  )`
  const last = (what: string) => `(
    SELECT ${what} FROM ${history} AS p
    WHERE ${same('p', 'r')}
    ORDER BY p."_valid_to" DESC, p."_sequence" DESC LIMIT 1
  )`
  // Where the next version does not begin at this one's end, versions between them were not kept.
  const after = `nullif(coalesce(
    (
      SELECT CASE WHEN n."_valid_from" = h."_valid_to" THEN n."_json" ELSE '' END FROM ${history} AS n
      WHERE ${same('n', 'h')} AND ${isBefore('h', 'n')}
      ORDER BY n."_valid_to", n."_sequence" LIMIT 1
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
  return `CREATE VIEW ${quoted(changesViewName(name))} AS
SELECT ${columns('h')}, h."_reason" AS "change", h."_valid_to" AS "at", h."_changed_fields" AS "changed_fields",
  h."_json" AS "before", CASE h."_reason" WHEN 'changed' THEN ${after} END AS "after"
FROM ${history} AS h
UNION ALL
SELECT ${columns('h')}, CASE
    WHEN h."_first_seen_at" < h."_valid_from" THEN 'changed'
    WHEN ${previous('1')} IS NULL THEN 'added'
    ELSE 'returned'
  END, h."_valid_from", NULL, NULL, h."_json"
FROM ${history} AS h
WHERE ${previous(`p."_reason" = 'changed' AND p."_valid_to" = h."_valid_from"`)} IS NOT TRUE
UNION ALL
SELECT ${columns('r')}, CASE WHEN ${wasThereBefore} THEN 'returned' ELSE 'added' END, r."_first_seen_at", NULL, NULL,
  CASE WHEN r."_changed_at" = r."_first_seen_at" THEN r."_json" END
FROM ${raw} AS r
WHERE NOT ${beganInHistory}
UNION ALL
SELECT ${columns('r')}, 'changed', r."_changed_at", NULL, NULL, r."_json"
FROM ${raw} AS r
WHERE r."_changed_at" > r."_first_seen_at"
  AND ${last(`p."_reason" = 'changed' AND p."_valid_to" = r."_changed_at"`)} IS NOT TRUE;
COMMENT ON VIEW ${quoted(changesViewName(name))} IS ${literal(`One row an event of ${name}, of history and live rows.`)}`
}

/** Whether one version of an item ended before another one. */
function isBefore(one: string, other: string): string {
  return `(${one}."_valid_to", ${one}."_sequence") < (${other}."_valid_to", ${other}."_sequence")`
}
