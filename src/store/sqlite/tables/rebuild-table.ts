import type { Column, ColumnType } from '../../columns/column.ts'
import { type Connection, quoted } from '../sql.ts'

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
  added: readonly Pick<Column, 'name' | 'type'>[]
}

/**
 * Copies a table into a changed one that replaces it (https://sqlite.org/lang_altertable.html#otheralter).
 * Row ids stay, and so do users' indexes, triggers, views and foreign keys. Call it inside a transaction and
 * `withoutForeignKeys`. `onRows` gets the number of rows of each statement.
 */
export function rebuildTable(
  connection: Connection,
  table: string,
  { types, added }: TableChanges,
  onRows: (rows: number) => void,
): void {
  if (connection.pragma('foreign_keys', { simple: true }) !== 0) throw new Error('foreign keys are on')
  dropFormerCopy(connection, table)
  const copy = nameOfCopy(table)
  const belongings = belongingsOf(connection, table)
  createCopy(connection, table, types)
  for (const column of added) addColumn(connection, copy, column)
  copyRows(connection, table, types, onRows)
  const exchange = [`DROP TABLE ${quoted(table)}`, `ALTER TABLE ${quoted(copy)} RENAME TO ${quoted(table)}`]
  for (const sql of [...exchange, ...belongings]) connection.exec(sql)
}

/** SQLite reads every row of a STRICT table for it. */
export function addColumn(
  connection: Connection,
  table: string,
  { name, type }: Pick<Column, 'name' | 'type'>,
): void {
  connection.exec(`ALTER TABLE ${quoted(table)} ADD COLUMN ${quoted(name)} ${type}`)
}

/**
 * Drops what earlier versions, which copied a table over several transactions, may have left: the copy and
 * the triggers that kept it up to date. The table itself always holds all rows.
 */
export function dropFormerCopy(connection: Connection, table: string): void {
  const copy = nameOfCopy(table)
  if (declarationOf(connection, copy) === undefined) return
  for (const event of ['insert', 'update', 'delete'])
    connection.exec(`DROP TRIGGER IF EXISTS ${quoted(`${copy}_${event}`)}`)
  connection.exec(`DROP TABLE ${quoted(copy)}`)
}

function nameOfCopy(table: string): string {
  return `_new_${table}`
}

/** The SQL that declares a table; undefined if there is none. */
export function declarationOf(connection: Connection, table: string): string | undefined {
  const schema = connection.prepare("SELECT sql FROM sqlite_schema WHERE type = 'table' AND name = ?").pluck()
  return schema.get(table) as string | undefined
}

/** The SQL of the indexes and triggers of a table or view. NOCASE: a trigger names its table as the user typed it. */
export function belongingsOf(connection: Connection, table: string): string[] {
  const sql = `
    SELECT sql
    FROM sqlite_schema
    WHERE type IN ('index', 'trigger') AND tbl_name = ? COLLATE NOCASE AND sql IS NOT NULL
    ORDER BY _rowid_
  `
  return connection.prepare(sql).pluck().all(table) as string[]
}

/**
 * Creates an empty table, declared like the other one except for the types: columns and constraints of users
 * stay. A wrong edit of the declaration is an SQL error, or shows in the columns.
 */
function createCopy(connection: Connection, table: string, types: ReadonlyMap<string, ColumnType>): void {
  const [copy, columns] = [nameOfCopy(table), columnsOf(connection, table)]
  const wanted = columns.map((column) => ({ ...column, type: types.get(column.name) ?? column.type }))
  const declaration = withTypes(declarationOf(connection, table) ?? '', types)
  connection.exec(declaration.replace(`CREATE TABLE ${quoted(table)}`, () => `CREATE TABLE ${quoted(copy)}`))
  if (JSON.stringify(columnsOf(connection, copy)) !== JSON.stringify(wanted))
    throw new Error(`the table ${table} is declared in a way that cannot be changed here`)
}

/** All columns of a table, generated ones too. */
function columnsOf(connection: Connection, table: string): { name: string; type: string }[] {
  const sql = 'SELECT name, type, "notnull", dflt_value, pk, hidden FROM pragma_table_xinfo(?)'
  return connection.prepare(sql).all(table) as { name: string; type: string }[]
}

/** Names, texts and comments, and the type behind a name: what a field is called may look like any SQL. */
const TOKENS =
  /("(?:[^"]|"")*"|'(?:[^']|'')*'|`(?:[^`]|``)*`|\[[^\]]*\]|--[^\n]*|\/\*[\s\S]*?\*\/)(?: (?:INTEGER|REAL|TEXT)\b)?/g

function withTypes(declaration: string, types: ReadonlyMap<string, ColumnType>): string {
  const wanted = new Map([...types].map(([name, type]) => [quoted(name), type]))
  return declaration.replaceAll(TOKENS, (all, token: string) => {
    const type = all === token ? undefined : wanted.get(token)
    return type === undefined ? all : `${token} ${type}`
  })
}

const BEFORE_ALL_ROWS = -(2n ** 63n)

/** `_rowid_` is the only name of the row id that no field can have. */
function copyRows(
  connection: Connection,
  table: string,
  types: ReadonlyMap<string, ColumnType>,
  onRows: (rows: number) => void,
): void {
  const names = connection.prepare('SELECT name FROM pragma_table_info(?)').pluck().all(table) as string[]
  // STRICT refuses an integer in a TEXT column without the cast.
  const values = names.map((name) =>
    types.has(name) ? `CAST(${quoted(name)} AS ${types.get(name)})` : quoted(name),
  )
  const [from, to] = [quoted(table), quoted(nameOfCopy(table))]
  const copy = connection.prepare(`
    INSERT INTO ${to} (${['_rowid_', ...names.map(quoted)].join(', ')})
    SELECT ${['_rowid_', ...values].join(', ')} FROM ${from} WHERE _rowid_ > ? ORDER BY _rowid_ LIMIT ${BATCH_ROWS}
  `)
  const lastCopied = connection.prepare(`SELECT max(_rowid_) FROM ${to}`).pluck().safeIntegers()
  for (let changes = BATCH_ROWS; changes === BATCH_ROWS; ) {
    changes = copy.run(lastCopied.get() ?? BEFORE_ALL_ROWS).changes
    onRows(changes)
  }
}
