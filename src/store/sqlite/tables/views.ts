import { tableName } from '../../columns/catalog.ts'
import type { ColumnType } from '../../columns/column.ts'
import { BEGINNING, type ElementSql } from '../../core/array-views.ts'
import { EVENT_COLUMNS, EVENT_NAMES, eventKeyNames, SEQ, selectChanges } from '../../core/changes-view.ts'
import { type Described, OF_A_COLLECTION } from '../../core/declarations.ts'
import type { ViewedTable } from '../../core/fit.ts'
import { type Dialect, quoted } from '../../core/sql.ts'
import type { MirrorView } from '../../core/views.ts'
import { HELP, OF_AN_ARRAY, OF_THE_MIRROR, WORKING_COLUMNS, WORKINGS } from '../../help-texts.ts'

/** Views that read elements need SQLite 3.38 or later. */
export const ELEMENTS: ElementSql = {
  index: 'CAST(e."key" AS INTEGER)',
  from: (column, sentAt) => `, json_each(${listSql(column, sentAt)}) AS e\nWHERE e."type" = 'object'`,
  fitting: fittingSql,
  text(path) {
    const { at, written } = elementAt(path)
    return `CASE json_type(${at}) WHEN 'text' THEN json_extract(${at}) WHEN 'null' THEN NULL WHEN 'object' THEN NULL ELSE ${written} END`
  },
}

/** In the text of the view of changes, to tell it from a view of a user's. */
const MARK = '/* made by admin-mirror */'

/** Whether this SQL of a view is ours. */
export function isViewSql(sql: string, view: string): boolean {
  return sql.startsWith(`CREATE VIEW ${quoted(view)} AS\n${BEGINNING}`) || sql.includes(MARK)
}

// CASE in CASE: only CASE guarantees that json_type never gets a text that is not JSON.
function listSql(column: string, sentAt: string | null): string {
  const list = `CASE WHEN json_valid(${column}) THEN CASE json_type(${column}) WHEN 'array' THEN ${column} END END`
  if (sentAt === null) return list
  return `CASE WHEN ${kindSql(sentAt)} IS NOT 'text' THEN ${list} END`
}

/** The JSON type of the value at a path of the item: `text`, `array`. NULL for items nested deeper than 1,000, which SQLite cannot read. */
function kindSql(path: string): string {
  return `CASE WHEN json_valid(r."_json") THEN json_type(r."_json", ${literal(path)}) END`
}

/** `written`: numbers, booleans and arrays as they are in the JSON; json_extract would round the number. */
function elementAt(path: string): { at: string; written: string } {
  return { at: `e."value", ${literal(path)}`, written: `e."value" -> ${literal(path)}` }
}

function fittingSql(type: ColumnType, path: string): string {
  const { at, written } = elementAt(path)
  if (type === 'TEXT')
    return `CASE WHEN json_type(${at}) NOT IN ('true', 'false') THEN ${ELEMENTS.text(path)} END`
  const value = `json_extract(${at})`
  const whole = `CAST(${value} AS INTEGER)`
  // A text that SQLite writes again unchanged after the cast is a whole number within 64 bits.
  const isWhole = `(CAST(${whole} AS TEXT) = ${value} OR ${value} = '-0')`
  const isExact = `${value} BETWEEN -9007199254740991 AND 9007199254740991`
  if (type === 'INTEGER')
    return `CASE json_type(${at})
    WHEN 'integer' THEN CASE typeof(${value}) WHEN 'integer' THEN ${value} END
    WHEN 'real' THEN CASE WHEN ${isExact} AND ${whole} = ${value} AND NOT ${isLost(value, written)} THEN ${whole} END
    WHEN 'text' THEN CASE WHEN ${isWhole} THEN ${whole} END
    WHEN 'true' THEN 1
    WHEN 'false' THEN 0
  END`
  const double = `CAST(${value} AS REAL)`
  const digits = `ltrim(replace(replace(rtrim(${value}, '0'), '.', ''), '-', ''), '0')`
  const isFraction = `length(${value}) <= 100 AND ${value} LIKE '%.%' AND ${value} NOT GLOB '*[^-0-9.]*' AND json_valid(${value}) AND length(${digits}) <= 15`
  // -0e0 is 0 in the table's own columns, and -0.0 + 0.0 is 0.0.
  return `CASE json_type(${at})
    WHEN 'integer' THEN CASE WHEN typeof(${value}) = 'integer' AND ${double} = ${value} THEN ${value} END
    WHEN 'real' THEN CASE WHEN ${value} BETWEEN 5e-324 AND 9007199254740991 THEN ${value} WHEN ${isExact} AND NOT ${isLost(value, written)} THEN ${value} + 0.0 END
    WHEN 'text' THEN CASE
      WHEN ${isWhole} THEN CASE WHEN ${double} = ${whole} THEN ${whole} END
      WHEN ${isFraction} THEN ${double} + 0.0
    END
  END`
}

/** Whether a number is too small for a double: 1e-400. */
function isLost(value: string, written: string): string {
  return `(${value} = 0 AND iif(${written} LIKE '%e%', ${written} GLOB '*[1-9]*[eE]*', ${written} GLOB '*[1-9]*'))`
}

function literal(text: string): string {
  return `'${text.replaceAll("'", "''")}'`
}

/** The first SELECT declares the types. SQLite takes no expression for an INTEGER, only a column. */
export function changesSql(dialect: Dialect, shape: ViewedTable): string {
  const { name, keyColumns } = shape
  const raw = quoted(tableName(name, 'raw'))
  const keys = ['_organization_id', ...keyColumns].map(quoted)
  const names = ['_organization_id', ...eventKeyNames(keyColumns)].map(quoted)
  const columns = [
    `"_changed_seq" AS ${quoted(SEQ)}`,
    ...keys.map((key, index) => `${key} AS ${names[index]}`),
    ...Object.keys(EVENT_COLUMNS).map((column) => `CAST(NULL AS TEXT) AS ${quoted(column)}`),
  ]
  return `${MARK}
SELECT ${columns.join(', ')} FROM ${raw} WHERE _rowid_ = NULL
UNION ALL
${selectChanges(dialect, shape)}`
}

// `sync_help` is a view, so that it knows new collections and arrays without being written.

export function helpView(): MirrorView {
  const [says, texts] = HELP
  const columns = Object.entries(texts).map(
    ([name, text]) => [name, [`CAST(${quoted(name)} AS TEXT)`, text]] as const,
  )
  return { name: 'sync_help', says, columns: Object.fromEntries(columns), from: `FROM (${linesSql()})` }
}

function linesSql(): string {
  // A key's path has dots where its column has two underscores, and a name with `_` in front gets a prefix.
  const key = `iif(key.value LIKE '\\_%' ESCAPE '\\', 'field', '') || replace(key.value, '.', '__')`
  // As `eventKeyNames` does it.
  const isTaken = `lower(key.value) IN (${EVENT_NAMES.map((column) => `'${column}'`).join(', ')})`
  const eventKey = `iif(ending = '_changes' AND ${isTaken}, key.value || '_2', ${key})`
  const ofKeys = `
    FROM sync_collections AS of, json_each(of.key) AS key`
  const discovered = `
    SELECT known.collection, known."column", CASE role
      WHEN 'text' THEN 'values at ' || path || ' of the item that do not fit its column, as text'
      ELSE 'the value at ' || path || ' of the item' END
    FROM sync_known_columns AS known WHERE role <> 'key'`
  const array = `(SELECT DISTINCT view, substr(view, 1, instr(view, '__') - 1) AS collection FROM sync_view_columns)`
  const workings = Object.entries(WORKINGS).map(([table, says]) => [table, null, says])
  const workingColumns = Object.entries(WORKING_COLUMNS).flatMap(([table, columns]) =>
    columns.split(' ').map((column) => [table, column, 'internal']),
  )
  const [own, made, arrays] = [
    [...lines(OF_THE_MIRROR), ...workings, ...workingColumns],
    lines(OF_A_COLLECTION),
    lines({ '': OF_AN_ARRAY }),
  ].map(values)
  return `WITH
  own(name, "column", says) AS (VALUES ${own}),
  made(ending, "column", says) AS (VALUES ${made}),
  arrays(ending, "column", says) AS (VALUES ${arrays})
SELECT name AS "table", "column", says FROM own
UNION ALL
SELECT of.name || ending, "column", says FROM sync_collections AS of, made WHERE "column" IS NOT 'KEY'
UNION ALL
SELECT of.name || ending, ${eventKey}, says ${ofKeys}, made WHERE "column" = 'KEY'
UNION ALL
${discovered}
UNION ALL
SELECT view, "column", CASE role
  WHEN 'text' THEN 'values at ' || path || ' of the element that do not fit its column, as text'
  ELSE 'the value at ' || path || ' of the element' END
FROM sync_view_columns
UNION ALL
SELECT view, "column", says FROM ${array}, arrays WHERE "column" IS NOT '_parent_KEY'
UNION ALL
SELECT view, '_parent_' || (${key}), says ${ofKeys}, ${array} AS a, arrays
WHERE a.collection = of.name AND "column" = '_parent_KEY'`
}

function values(rows: (string | null)[][]): string {
  return rows
    .map((line) => `\n    (${line.map((value) => (value === null ? 'NULL' : literal(value))).join(', ')})`)
    .join(',')
}

function lines(texts: Readonly<Record<string, Described>>): (string | null)[][] {
  return Object.entries(texts).flatMap(([table, [says, columns]]) => [
    [table, null, says],
    ...Object.entries(columns).map(([column, about]) => [table, column, about]),
  ])
}
