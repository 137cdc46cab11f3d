import { parseSqlitePath } from '../../columns/column.ts'
import type { ElementSql } from '../../core/array-views.ts'
import { literal } from '../storable.ts'

/** A function that each of our views calls: by it they are told from views of users. */
export const VIEW_MARK = 'json_list('

export const ELEMENTS: ElementSql = {
  index: 'e.ordinal - 1',
  from(column, sentAt) {
    const list =
      sentAt === null
        ? column
        : `CASE WHEN left(${column}, 1) = '[' AND NOT ${hasTextSql(sentAt)} THEN ${column} END`
    return ` CROSS JOIN LATERAL json_array_elements(json_list(${list})) WITH ORDINALITY AS e (value, ordinal)
WHERE json_typeof(e.value) = 'object'`
  },
  // The functions are in the migrations.
  fitting(type, path) {
    const { at, kind } = valueAt(path)
    if (type === 'INTEGER') return `json_whole(${at})`
    if (type === 'REAL') return `json_real(${at})`
    return `CASE WHEN ${kind} <> 'boolean' THEN ${ELEMENTS.text(path)} END`
  },
  text(path) {
    const { at, kind, names } = valueAt(path)
    return `CASE ${kind} WHEN 'string' THEN e.value #>> ${names} WHEN 'null' THEN NULL WHEN 'object' THEN NULL ELSE (${at})::text END`
  },
}

/** A condition: the item has a text at this path. In names, the function replaces what PostgreSQL cannot hold, so it is replaced here, too. */
function hasTextSql(path: string): string {
  const names = parseSqlitePath(path).map((name) => literal(name.toWellFormed().replaceAll('\0', '\u0001')))
  return `json_has_text(r."_json", ARRAY[${names.join(', ')}]::text[])`
}

function valueAt(path: string): Record<'at' | 'kind' | 'names', string> {
  const names = `ARRAY[${parseSqlitePath(path)
    .map((name) => literal(storableName(name)))
    .join(', ')}]::text[]`
  return { names, at: `e.value #> ${names}`, kind: `json_typeof(e.value #> ${names})` }
}

/** As `storableJson` has written it. */
function storableName(name: string): string {
  return name.toWellFormed().replaceAll('\0', '\\u0000')
}
