import type Database from 'better-sqlite3'
import { type Column, parseSqlitePath, SQLITE_LIMITS, sqlitePath } from '../columns/column.ts'
import {
  all,
  type Dialect,
  type ElementSql,
  exec,
  literal,
  one,
  quoted,
  type Rule,
  type Statement,
  withParameters,
} from '../core/sql.ts'

export type Connection = Database.Database

/** Views that read elements need SQLite 3.38 or later, and 3.45 for fields whose names have a `"`. */
const ELEMENTS: ElementSql = {
  index: 'CAST(e."key" AS INTEGER)',
  // CASE in CASE: only CASE guarantees that json_type never gets a text that is not JSON.
  from(column, hasNul) {
    const list = hasNul ? withoutNul(column) : column
    return `, json_each(CASE WHEN json_valid(${list}) THEN CASE json_type(${list}) WHEN 'array' THEN ${list} END END) AS e\nWHERE e."type" = 'object'`
  },
  value(type, path) {
    const at = literal(sqlitePath(parseSqlitePath(path).map((name) => name.replaceAll('\0', '\\u0000'))))
    const [kind, value] = [`json_type(e."value", ${at})`, `(e."value" ->> ${at})`]
    const written = `e."value" -> ${at}`
    if (type === 'TEXT')
      return `CASE ${kind} WHEN 'text' THEN ${value} WHEN 'integer' THEN ${written} WHEN 'real' THEN ${written} WHEN 'array' THEN ${written} END`
    const isExact = `${value} BETWEEN -9007199254740991 AND 9007199254740991`
    // A text counts as the number that it writes out: SQLite writes that number in the same way.
    const whole = `CAST(${value} AS INTEGER)`
    if (type === 'INTEGER')
      return `CASE ${kind}
    WHEN 'integer' THEN CASE typeof(${value}) WHEN 'integer' THEN ${value} END
    WHEN 'true' THEN 1
    WHEN 'false' THEN 0
    WHEN 'real' THEN CASE WHEN ${isExact} AND ${whole} = ${value} THEN ${whole} END
    WHEN 'text' THEN CASE WHEN CAST(${whole} AS TEXT) = ${value} THEN ${whole} END
  END`
    return `CASE ${kind}
    WHEN 'integer' THEN CASE WHEN ${isExact} THEN ${value} END
    WHEN 'real' THEN CASE WHEN abs(${value}) <= 1.7976931348623157e308 THEN ${value} END
    WHEN 'text' THEN CASE WHEN length(${value}) <= 15 AND ${value} NOT GLOB '*[^-0-9.]*' AND json_valid(${value}) THEN ${value} END
  END`
  },
}

/** JSON that writes `\\u0000` for each NUL, as a server stores it: SQLite reads a name up to its NUL only, and so another field. `\u005c` is a backslash. */
function withoutNul(json: string): string {
  return `replace(replace(replace(${json}, '\\\\', '\\u005c'), '\\u0000', '\\\\u0000'), '\\u005c', '\\\\')`
}

export const SQLITE: Dialect = {
  limits: SQLITE_LIMITS,
  now: "unixepoch('subsec') * 1000",
  each: (list, alias) => `json_each(${list}) AS ${alias}`,
  idOfRow(keys, row) {
    const texts = keys.map(({ name }) => `CAST(${row}.${quoted(name)} AS TEXT)`)
    return texts.length === 1 ? texts.join() : `json_array(${texts.join(', ')})`
  },
  hasId(keys, row, id) {
    const part = (index: number) => (keys.length === 1 ? id : `json_extract(${id}, '$[${index}]')`)
    return keys
      .map(({ name, type }, index) => `${row}.${quoted(name)} = CAST(${part(index)} AS ${type})`)
      .join(' AND ')
  },
  stored: (row) => row,
  lock: () => '',
  declared: (type) => TYPES[type] ?? 'TEXT',
  *taken(names) {
    const text = `
      SELECT name FROM sqlite_schema JOIN json_each(:names) AS wanted ON name = wanted.value COLLATE NOCASE LIMIT 1
    `
    return (yield* one<{ name: string }>(text, { names: JSON.stringify(names) }))?.name ?? null
  },
  lines: () => ({
    value: () => '?',
    rows: (expressions) => `VALUES (${expressions.join(', ')})`,
    join: '',
    from: '',
    *run(text, lines, values = {}) {
      return lines.length === 0 ? 0 : ((yield { text, values, lines, wants: 'count' }) as number)
    },
  }),
  *retype(tables, columns) {
    for (const table of tables) yield* rebuildTable(table, columns)
  },
  *makeView(name, select) {
    const wanted = `CREATE VIEW ${quoted(name)} AS\n${select}`
    const found = yield* one<{ sql: string }>('SELECT sql FROM sqlite_schema WHERE name = :name', { name })
    if (found?.sql !== wanted) yield* exec([`DROP VIEW IF EXISTS ${quoted(name)}`, wanted])
  },
  elements: ELEMENTS,
}

/** Types of parameters and columns; all others are texts. */
const TYPES: Record<string, string> = { bigint: 'INTEGER', 'double precision': 'REAL' }

interface DeclaredColumn {
  name: string
  type: string
  notnull: number
  dflt_value: string | null
  pk: number
}

/**
 * Copies a table into one with other types of columns that replaces it (https://sqlite.org/lang_altertable.html#otheralter), and makes its indexes
 * and triggers again. It happens some five times in the life of a mirror. A connection that writes has foreign keys off, so that DROP TABLE fires
 * no CASCADE of a user, and `legacy_alter_table` on, so that RENAME does not fail while a view names the dropped table.
 */
function* rebuildTable(table: string, columns: readonly Column[]): Rule<void> {
  const types = new Map(columns.map(({ name, type }) => [name, type]))
  const copy = quoted(`_new_${table}`)
  // NOCASE: an index or a trigger names its table as the user typed it.
  const belongings = yield* all<{ sql: string }>(
    `
      SELECT sql
      FROM sqlite_schema
      WHERE type IN ('index', 'trigger') AND tbl_name = :table COLLATE NOCASE AND sql IS NOT NULL
      ORDER BY _rowid_
    `,
    { table },
  )
  const known = yield* all<DeclaredColumn>(
    'SELECT name, type, "notnull", dflt_value, pk FROM pragma_table_info(:table)',
    { table },
  )
  const declarations = known.map(({ name, type, notnull, dflt_value: value, pk }) =>
    [
      quoted(name),
      types.get(name) ?? type,
      ...(pk > 0 ? ['PRIMARY KEY'] : []),
      ...(notnull === 1 ? ['NOT NULL'] : []),
      ...(value === null ? [] : [`DEFAULT (${value})`]),
    ].join(' '),
  )
  const names = known.map(({ name }) => quoted(name)).join(', ')
  const values = known.map(({ name }) =>
    types.has(name) ? `CAST(${quoted(name)} AS ${types.get(name)})` : quoted(name),
  )
  yield* exec([
    `CREATE TABLE ${copy} (\n  ${declarations.join(',\n  ')}\n)`,
    `INSERT INTO ${copy} (${names}) SELECT ${values.join(', ')} FROM ${quoted(table)} ORDER BY _rowid_`,
    `DROP TABLE ${quoted(table)}`,
    `ALTER TABLE ${copy} RENAME TO ${quoted(table)}`,
    ...belongings.map(({ sql }) => sql),
  ])
}

/** More statements than the tables of some dozen collections need. */
const MOST_PREPARED = 500

/** Prepared statements by their text, for as long as their connection is open. */
const prepared = new WeakMap<Connection, Map<string, Database.Statement>>()

/** Runs the statements of a rule, all before it returns. Call it inside a transaction if the rule writes. */
export function runRule<T>(connection: Connection, rule: Rule<T>): T {
  let next = rule.next()
  while (!next.done) next = rule.next(runStatement(connection, next.value))
  return next.value
}

function runStatement(connection: Connection, { text, values, lines, wants }: Statement): unknown {
  if (wants === 'nothing') return connection.exec(text)
  const statement = prepare(connection, text)
  if (lines) return lines.reduce((changed, line) => changed + statement.run(line, values).changes, 0)
  return wants === 'rows' ? statement.all(values) : statement.run(values).changes
}

function prepare(connection: Connection, text: string): Database.Statement {
  const known = prepared.get(connection) ?? new Map<string, Database.Statement>()
  const found = known.get(text)
  if (found) return found
  const statement = connection.prepare(withParameters(text, parameter))
  // Each new column changes the SQL of its table, so old texts pile up.
  if (known.size >= MOST_PREPARED) known.clear()
  prepared.set(connection, known.set(text, statement))
  return statement
}

/**
 * SQLite compiles a statement again for each value of a bare parameter, unless a unique index settles the plan. That takes ten times as long
 * as the query; a CAST prevents it.
 */
function parameter(name: string, type: string | undefined): string {
  return type === undefined ? `:${name}` : `CAST(:${name} AS ${TYPES[type] ?? 'TEXT'})`
}
