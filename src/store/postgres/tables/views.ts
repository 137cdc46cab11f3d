import { type KeyPaths, keyColumnNames } from '../../columns/catalog.ts'
import type { Column, ColumnType } from '../../columns/column.ts'
import { type ArrayView, parentNames } from '../../columns/elements.ts'
import { parseSqlitePath } from '../../columns/flatten.ts'
import { joinRaw, SQL_TYPES } from '../../core/sql.ts'
import { literal, POSTGRES_LIMITS, quoted } from '../sql.ts'

/** A function that each of our views calls: by it they are told from views of users. */
export const VIEW_MARK = 'json_list('

export function viewComment(table: string, { name, arrayColumn }: ArrayView): string[] {
  return [
    `COMMENT ON VIEW ${quoted(name)} IS ${literal(`One row for each element of ${arrayColumn} of ${table}.`)}`,
  ]
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
      (element) =>
        `(${valueSql(element, view.elements)})::${SQL_TYPES[element.type]} AS ${quoted(element.name)}`,
    ),
  ]
  const array = `t.${quoted(view.arrayColumn)}`
  const [join, list] =
    view.sentAt === null
      ? ['', array]
      : [
          ` ${joinRaw({ join: 'JOIN' }, table, keyColumns)}`,
          `CASE WHEN left(${array}, 1) = '[' AND NOT ${hasTextSql(view.sentAt)} THEN ${array} END`,
        ]
  return `SELECT
  ${columns.join(',\n  ')}
FROM ${quoted(table)} AS t${join} CROSS JOIN LATERAL json_array_elements(json_list(${list})) WITH ORDINALITY AS e (value, ordinal)
WHERE json_typeof(e.value) = 'object'`
}

/** A condition: the item has a text at this path. In names, the function replaces what PostgreSQL cannot hold, so it is replaced here, too. */
export function hasTextSql(path: string): string {
  const names = parseSqlitePath(path).map((name) => literal(name.toWellFormed().replaceAll('\0', '\u0001')))
  return `json_has_text(r."_json", ARRAY[${names.join(', ')}]::text[])`
}

/** The SQL of `fittingValue(asRead(value))`; its functions are made by the migrations. */
function valueSql({ path, type, role }: Column, elements: readonly Column[]): string {
  const names = parseSqlitePath(path).map((name) => literal(storableName(name)))
  const at = `e.value #> ARRAY[${names.join(', ')}]::text[]`
  const kind = `json_typeof(${at})`
  const text = `CASE ${kind} WHEN 'string' THEN e.value #>> ARRAY[${names.join(', ')}]::text[] WHEN 'null' THEN NULL WHEN 'object' THEN NULL ELSE (${at})::text END`
  const fitting: Record<ColumnType, string> = {
    INTEGER: `json_whole(${at})`,
    REAL: `json_real(${at})`,
    TEXT: `CASE WHEN ${kind} <> 'boolean' THEN ${text} END`,
  }
  if (role === 'text') {
    const main = elements.find((one) => one.role === 'value' && one.path === path)
    return `CASE WHEN ${fitting[main?.type ?? 'TEXT']} IS NULL THEN ${text} END`
  }
  // An earlier version had booleans in columns of texts, where they stay until another one comes.
  const isAlone = !elements.some((one) => one.role === 'text' && one.path === path)
  return type === 'TEXT' && isAlone ? text : fitting[type]
}

/** As `storableJson` has written it. */
function storableName(name: string): string {
  return name.toWellFormed().replaceAll('\0', '\\u0000')
}

export function keyNames(keyPaths: KeyPaths): string[] {
  return keyColumnNames(keyPaths, POSTGRES_LIMITS)
}
