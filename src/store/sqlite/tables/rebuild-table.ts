import type { Column, ColumnType } from '../../columns/column.ts'
import { addColumnSql } from '../../core/declarations.ts'
import { all, exec, one, quoted, type Rule, run } from '../../core/sql.ts'
import { SQLITE } from '../driver.ts'
import type { Connection } from '../sql.ts'

/** Rows that one statement copies. Progress is reported after each. */
const BATCH_ROWS = 50_000

/**
 * Runs `task`, which may rebuild tables, outside any transaction: within one, SQLite ignores `foreign_keys`.
 * With foreign keys on, DROP TABLE deletes the rows first, and a user's ON DELETE CASCADE fires; without
 * `legacy_alter_table`, RENAME fails while a user's view names the dropped table.
 */
export function withoutForeignKeys<T>(connection: Connection, task: () => T): T {
  const before = ['foreign_keys', 'legacy_alter_table'].map(
    (name) => `${name} = ${Number(connection.pragma(name, { simple: true }))}`,
  )
  connection.pragma('foreign_keys = OFF')
  connection.pragma('legacy_alter_table = ON')
  try {
    return task()
  } finally {
    for (const pragma of before) connection.pragma(pragma)
  }
}

/** How a rebuilt table differs from the old one. */
export interface TableChanges {
  /** The new types of existing columns, by name. */
  types: ReadonlyMap<string, ColumnType>
  added: readonly Column[]
}

/**
 * Copies a table into a changed one that replaces it (https://sqlite.org/lang_altertable.html#otheralter).
 * Row ids stay, and so do users' indexes, triggers, views and foreign keys. Call it inside a transaction and
 * `withoutForeignKeys`. `onRows` gets the number of rows of each statement.
 */
export function* rebuildTable(
  table: string,
  { types, added }: TableChanges,
  onRows: (rows: number) => void,
): Rule<void> {
  const keys = yield* one<{ foreign_keys: number }>('PRAGMA foreign_keys')
  if (keys?.foreign_keys !== 0) throw new Error('foreign keys are on')
  yield* dropFormerCopy(table)
  const copy = nameOfCopy(table)
  const belongings = yield* belongingsOf(table)
  yield* createCopy(table, types)
  yield* exec(added.flatMap((column) => addColumnSql(SQLITE, copy, column)))
  yield* copyRows(table, types, onRows)
  yield* exec([
    `DROP TABLE ${quoted(table)}`,
    `ALTER TABLE ${quoted(copy)} RENAME TO ${quoted(table)}`,
    ...belongings,
  ])
}

/**
 * Drops what earlier versions, which copied a table over several transactions, may have left: the copy and
 * the triggers that kept it up to date. The table itself always holds all rows.
 */
export function* dropFormerCopy(table: string): Rule<void> {
  const copy = nameOfCopy(table)
  if ((yield* declarationOf(copy)) === null) return
  const triggers = ['insert', 'update', 'delete'].map((event) => quoted(`${copy}_${event}`))
  yield* exec([
    ...triggers.map((trigger) => `DROP TRIGGER IF EXISTS ${trigger}`),
    `DROP TABLE ${quoted(copy)}`,
  ])
}

function nameOfCopy(table: string): string {
  return `_new_${table}`
}

/** The SQL that declares a table; null if there is none. */
export function* declarationOf(table: string): Rule<string | null> {
  const found = yield* one<{ sql: string }>(
    "SELECT sql FROM sqlite_schema WHERE type = 'table' AND name = :table",
    { table },
  )
  return found?.sql ?? null
}

/** The SQL of the indexes and triggers of a table or view. NOCASE: a trigger names its table as the user typed it. */
export function* belongingsOf(table: string): Rule<string[]> {
  const found = yield* all<{ sql: string }>(
    `
      SELECT sql
      FROM sqlite_schema
      WHERE type IN ('index', 'trigger') AND tbl_name = :table COLLATE NOCASE AND sql IS NOT NULL
      ORDER BY _rowid_
    `,
    { table },
  )
  return found.map(({ sql }) => sql)
}

/**
 * Creates an empty table, declared like the other one except for the types: columns and constraints of users
 * stay. A wrong edit of the declaration is an SQL error, or shows in the columns.
 */
function* createCopy(table: string, types: ReadonlyMap<string, ColumnType>): Rule<void> {
  const [copy, columns] = [nameOfCopy(table), yield* declaredColumns(table)]
  const wanted = columns.map((column) => ({ ...column, type: types.get(column.name) ?? column.type }))
  const declaration = withTypes((yield* declarationOf(table)) ?? '', types)
  yield* exec([declaration.replace(`CREATE TABLE ${quoted(table)}`, () => `CREATE TABLE ${quoted(copy)}`)])
  if (JSON.stringify(yield* declaredColumns(copy)) !== JSON.stringify(wanted))
    throw new Error(`the table ${table} is declared in a way that cannot be changed here`)
}

/** All columns of a table, generated ones too. */
function declaredColumns(table: string): Rule<{ name: string; type: string }[]> {
  return all('SELECT name, type, "notnull", dflt_value, pk, hidden FROM pragma_table_xinfo(:table)', {
    table,
  })
}

/** Names, texts and comments, and the type behind a name: what a field is called may look like any SQL. */
const TOKENS =
  /("(?:[^"]|"")*"|'(?:[^']|'')*'|`(?:[^`]|``)*`|\[[^\]]*\]|--[^\n]*|\/\*[\s\S]*?\*\/)(?: (?:INTEGER|REAL|TEXT)\b)?/g

function withTypes(declaration: string, types: ReadonlyMap<string, ColumnType>): string {
  const wanted = new Map([...types].map(([name, type]) => [quoted(name), type]))
  return declaration.replaceAll(TOKENS, (found, token: string) => {
    const type = found === token ? undefined : wanted.get(token)
    return type === undefined ? found : `${token} ${type}`
  })
}

/** `_rowid_` is the only name of the row id that no field can have. */
function* copyRows(
  table: string,
  types: ReadonlyMap<string, ColumnType>,
  onRows: (rows: number) => void,
): Rule<void> {
  const names = [...(yield* SQLITE.columnTypes(table)).keys()]
  // STRICT refuses an integer in a TEXT column without the cast.
  const values = names.map((name) =>
    types.has(name) ? `CAST(${quoted(name)} AS ${types.get(name)})` : quoted(name),
  )
  const [from, to] = [quoted(table), quoted(nameOfCopy(table))]
  const copy = `
    INSERT INTO ${to} (${['_rowid_', ...names.map(quoted)].join(', ')})
    SELECT ${['_rowid_', ...values].join(', ')} FROM ${from} WHERE _rowid_ > :last::bigint ORDER BY _rowid_ LIMIT ${BATCH_ROWS}
  `
  for (let rows = BATCH_ROWS; rows === BATCH_ROWS; ) {
    // As text: a row id may be too large for a number. None is below the least one.
    const last = yield* one<{ last: string }>(
      `SELECT CAST(coalesce(max(_rowid_), ${LEAST_ROW_ID}) AS TEXT) AS last FROM ${to}`,
    )
    rows = yield* run(copy, { last: last?.last ?? '' })
    onRows(rows)
  }
}

const LEAST_ROW_ID = '-9223372036854775808'
