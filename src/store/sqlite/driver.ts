import type Database from 'better-sqlite3'
import { SQLITE_LIMITS } from '../columns/column.ts'
import {
  all,
  type Dialect,
  exec,
  one,
  quoted,
  type Rule,
  type Statement,
  withParameters,
} from '../core/sql.ts'
import { ELEMENTS } from './elements.ts'
import { rebuildTable } from './rebuild-table.ts'

export type Connection = Database.Database

export const SQLITE: Dialect = {
  limits: SQLITE_LIMITS,
  rowId: '_rowid_',
  sequence: '_rowid_',
  // With a plain join SQLite may read the whole second table.
  join: 'CROSS JOIN',
  joinFirst: (table, as, where, order) =>
    `LEFT JOIN ${table} AS ${as} ON ${as}.id = (SELECT id FROM ${table} WHERE ${where} ORDER BY ${order} LIMIT 1)`,
  later: 'max',
  now: "unixepoch('subsec') * 1000",
  numberIn: (json, field) => `${json} ->> '$.${field}'`,
  each: (list, alias) => `json_each(${list}) AS ${alias}`,
  idOfRow({ keyColumns }, row) {
    const texts = keyColumns.map((name) => `CAST(${row}.${quoted(name)} AS TEXT)`)
    return texts.length === 1 ? texts.join() : `json_array(${texts.join(', ')})`
  },
  hasId({ keyColumns, keyTypes }, row, id) {
    const part = (index: number) => (keyColumns.length === 1 ? id : `json_extract(${id}, '$[${index}]')`)
    return keyColumns
      .map((name, index) => `${row}.${quoted(name)} = CAST(${part(index)} AS ${keyTypes[index]})`)
      .join(' AND ')
  },
  stored: (_catalog, row) => row,
  rowNotices: () => [],
  lock: () => '',
  *lockTables() {},
  declared: (type) => TYPES[type] ?? 'TEXT',
  *columnTypes(table) {
    const rows = yield* all<{ name: string; type: string }>(
      'SELECT name, type FROM pragma_table_info(:table)',
      { table },
    )
    return new Map(rows.map(({ name, type }) => [name, type]))
  },
  *relationNamed(names) {
    const text = 'SELECT type AS kind, name FROM sqlite_schema WHERE name = :name COLLATE NOCASE'
    for (const name of names) {
      const found = yield* one<{ kind: string; name: string }>(text, { name })
      if (found) return found
    }
    return null
  },
  ofOwner: 'AND epoch = :epoch',
  lines: () => ({
    value: () => '?',
    rows: (expressions) => `VALUES (${expressions.join(', ')})`,
    join: '',
    from: '',
  }),
  *eachLine(text, _columns, lines, values = {}) {
    return lines.length === 0 ? 0 : ((yield { text, values, lines, wants: 'count' }) as number)
  },
  *retype(tables) {
    for (const [table, columns] of tables)
      yield* rebuildTable(table, new Map(columns.map(({ name, type }) => [name, type])))
  },
  *makeView(name, select) {
    const wanted = `CREATE VIEW ${quoted(name)} AS\n${VIEW_MARK}\n${select}`
    if ((yield* viewSql(name)) !== wanted) yield* exec([`DROP VIEW IF EXISTS ${quoted(name)}`, wanted])
  },
  *isOwnView(name) {
    return (yield* viewSql(name))?.includes(VIEW_MARK) === true
  },
  elements: ELEMENTS,
}

/** In the text of our views, to tell them from those of users. */
const VIEW_MARK = '/* made by admin-mirror */'

function* viewSql(name: string): Rule<string | null> {
  const found = yield* one<{ sql: string }>(
    "SELECT sql FROM sqlite_schema WHERE type = 'view' AND name = :name COLLATE NOCASE",
    { name },
  )
  return found?.sql ?? null
}

/** Types of parameters and columns; all others are texts. */
const TYPES: Record<string, string> = { bigint: 'INTEGER', 'double precision': 'REAL' }

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
  const statement = connection.prepare(withCasts(text))
  // Each new column changes the SQL of its table, so old texts pile up.
  if (known.size >= MOST_PREPARED) known.clear()
  prepared.set(connection, known.set(text, statement))
  return statement
}

/** A text of the rules as SQLite reads it. */
function withCasts(text: string): string {
  return withParameters(text, parameter)
}

/**
 * SQLite compiles a statement again for each value of a bare parameter, unless a unique index settles the plan. That takes ten times as long
 * as the query; a CAST prevents it.
 */
function parameter(name: string, type: string | undefined): string {
  return type === undefined ? `:${name}` : `CAST(:${name} AS ${TYPES[type] ?? 'TEXT'})`
}
