import type { ElementColumn } from '../../columns/elements.ts'
import { quoted } from '../sql.ts'

export interface ViewOptions {
  view: string
  /** The typed table. */
  table: string
  /** In order; the view names them `_parent_NAME`. */
  keyColumns: readonly string[]
  /** The TEXT column that holds the array. */
  arrayColumn: string
  elements: readonly ElementColumn[]
}

/**
 * CREATE VIEW for an array of objects: one row for each element that is an object, with its `_index` from 0.
 * A column that is null, or text other than an array, has no elements. Needs SQLite 3.38 or later.
 */
export function viewSql({ view, table, keyColumns, arrayColumn, elements }: ViewOptions): string {
  const columns = [
    FIRST_COLUMN,
    ...keyColumns.map((key) => `t.${quoted(key)} AS ${quoted(`_parent_${key}`)}`),
    'CAST(e."key" AS INTEGER) AS "_index"',
    ...elements.map((element) => `CAST(${valueSql(element)} AS ${element.type}) AS ${quoted(element.name)}`),
  ]
  const from = `FROM ${quoted(table)} AS t, json_each(${arraySql(`t.${quoted(arrayColumn)}`)}) AS e`
  return `${beginning(view)}${columns.join(',\n  ')}\n${from}\nWHERE e."type" = 'object'`
}

const FIRST_COLUMN = 't."_organization_id" AS "_organization_id"'

function beginning(view: string): string {
  return `CREATE VIEW ${quoted(view)} AS\nSELECT\n  `
}

/** Whether this SQL of a view is ours, by how it begins: what follows differs among versions of this program. */
export function isViewSql(sql: string, view: string): boolean {
  return sql.startsWith(beginning(view) + FIRST_COLUMN)
}

// CASE in CASE: only CASE guarantees that json_type never gets a text that is not JSON.
function arraySql(column: string): string {
  return `CASE WHEN json_valid(${column}) THEN CASE json_type(${column}) WHEN 'array' THEN ${column} END END`
}

function valueSql({ path, type, holds }: ElementColumn): string {
  const at = `e."value", ${literal(path)}`
  if (holds === 'boolean') return `CASE json_type(${at}) WHEN 'true' THEN 1 WHEN 'false' THEN 0 END`
  if (type !== 'TEXT') {
    // -0e0 is 0 in the table's own columns, and -0.0 + 0.0 is 0.0.
    const zero = type === 'REAL' ? ' + 0.0' : ''
    return `CASE WHEN json_type(${at}) IN ('integer', 'real') THEN json_extract(${at})${zero} END`
  }
  // `->` returns numbers, booleans and arrays as they are in the JSON; json_extract would round the number.
  return `CASE json_type(${at}) WHEN 'text' THEN json_extract(${at}) WHEN 'null' THEN NULL WHEN 'object' THEN NULL ELSE e."value" -> ${literal(path)} END`
}

function literal(text: string): string {
  return `'${text.replaceAll("'", "''")}'`
}
