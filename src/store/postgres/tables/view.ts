import type { ElementColumn } from '../../columns/elements.ts'
import { parseSqlitePath } from '../../columns/path.ts'
import { parentNames } from '../../columns/view-names.ts'
import { SQL_TYPES } from '../../core/sql.ts'
import { literal, POSTGRES_LIMITS, quoted } from '../sql.ts'
import type { ArrayView } from './records.ts'

/** Stands in the definition of each of these views, and tells them from those of users: a function of the schema. */
export const VIEW_MARK = 'json_list('

/** CREATE VIEW, with its comment. */
export function viewSql(table: string, keyColumns: readonly string[], view: ArrayView): string {
  const name = quoted(view.name)
  return `CREATE VIEW ${name} AS
${viewSelect(table, keyColumns, view)};
COMMENT ON VIEW ${name} IS ${literal(`One row for each element of ${view.arrayColumn} of ${table}.`)}`
}

/**
 * The SELECT of the view for an array of objects: one row for each element that is an object, with its `_index` from 0. A column that
 * is null, or text other than a list, has no elements.
 */
export function viewSelect(table: string, keyColumns: readonly string[], view: ArrayView): string {
  const columns = [
    't."_organization_id" AS "_organization_id"',
    ...parentNames(keyColumns, POSTGRES_LIMITS).map(
      (name, index) => `t.${quoted(keyColumns[index] ?? '')} AS ${quoted(name)}`,
    ),
    'e.ordinal - 1 AS "_index"',
    ...view.elements.map(
      (element) => `(${valueSql(element)})::${SQL_TYPES[element.type]} AS ${quoted(element.name)}`,
    ),
  ]
  const from = `FROM ${quoted(table)} AS t CROSS JOIN LATERAL json_array_elements(json_list(t.${quoted(view.arrayColumn)})) WITH ORDINALITY AS e (value, ordinal)`
  return `SELECT
  ${columns.join(',\n  ')}
${from}
WHERE json_typeof(e.value) = 'object'`
}

function valueSql({ path, type, holds }: ElementColumn): string {
  const names = parseSqlitePath(path).map((name) => literal(storableName(name)))
  const at = `e.value #> ARRAY[${names.join(', ')}]::text[]`
  const text = `e.value #>> ARRAY[${names.join(', ')}]::text[]`
  const kind = `json_typeof(${at})`
  if (holds === 'boolean') return `CASE WHEN ${kind} = 'boolean' THEN ((${at})::text = 'true')::int END`
  // A view that could not be made anew may meet a fraction: it is no whole number.
  if (type === 'INTEGER')
    return `CASE WHEN ${kind} = 'number' AND ((${at})::text !~ '[.eE]' OR json_real(${at}) = json_whole(${at})) THEN json_whole(${at}) END`
  if (type === 'REAL') return `CASE WHEN ${kind} = 'number' THEN json_real(${at}) END`
  return `CASE ${kind} WHEN 'string' THEN ${text} WHEN 'null' THEN NULL WHEN 'object' THEN NULL ELSE (${at})::text END`
}

/** As `storableJson` has written it. */
function storableName(name: string): string {
  return name.toWellFormed().replaceAll('\0', '\\u0000')
}
