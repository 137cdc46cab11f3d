import { TABLE_KINDS, type TableKind, tableName } from '../../columns/catalog.ts'
import type { Column, ColumnChange, ColumnType } from '../../columns/column.ts'
import { addColumnSql } from '../../core/declarations.ts'
import type { Alteration } from '../../core/fit.ts'
import { all, exec, one, quoted, type Rule, run } from '../../core/sql.ts'
import { type Connection, SQLITE } from '../driver.ts'
import { changesSql, ELEMENTS, helpView } from './views.ts'

/** Runs within `withoutForeignKeys`. */
export const ALTERATION: Alteration = {
  dialect: SQLITE,
  *alterTables({ name }, changes) {
    yield* alterTables(name, changes)
    return null
  },
  furtherViews: [helpView()],
  *makeView(name, select) {
    const wanted = `CREATE VIEW ${quoted(name)} AS\n${select}`
    const known = yield* one<{ sql: string }>(
      "SELECT sql FROM sqlite_schema WHERE type = 'view' AND name = :name COLLATE NOCASE",
      { name },
    )
    if (known?.sql === wanted) return
    // A user's INSTEAD OF trigger would go with the view.
    const triggers = yield* belongingsOf(name)
    yield* exec([`DROP VIEW IF EXISTS ${quoted(name)}`, wanted, ...triggers])
  },
  elements: ELEMENTS,
  changes: (shape) => changesSql(SQLITE, shape),
  // SQLite changes a table whatever depends on it.
  *tried(begin) {
    yield* begin()
    return null
  },
}

/** Copying a table takes as long as adding this many columns to it. */
const MANY_COLUMNS = 6

function* alterTables(collection: string, changes: readonly ColumnChange[]): Rule<void> {
  for (const kind of TABLE_KINDS) {
    const table = tableName(collection, kind)
    const ofTable = yield* changesOf(collection, changes, kind)
    if (isRebuilt(ofTable)) yield* rebuildTable(table, ofTable)
    // For each added column SQLite reads every row of a STRICT table.
    else yield* exec(ofTable.added.flatMap((column) => addColumnSql(SQLITE, table, column)))
  }
}

/** About how many rows a table has. */
export function* rowsIn(table: string): Rule<number> {
  const row = yield* one<{ rows: number | null }>(`SELECT max(_rowid_) AS rows FROM ${quoted(table)}`)
  return row?.rows ?? 0
}

/** All three tables have the key columns, created as INTEGER before their type was known. */
function* changesOf(
  collection: string,
  changes: readonly ColumnChange[],
  kind: TableKind,
): Rule<TableChanges> {
  const columns = changes.map(({ column }) => column).filter(({ role }) => kind === 'typed' || role === 'key')
  const types = yield* SQLITE.columnTypes(tableName(collection, kind))
  const isAdded = new Set(changes.filter((change) => change.kind === 'add').map(({ column }) => column))
  const retyped = columns
    .filter((column) => !isAdded.has(column) || column.role === 'key')
    .filter(({ name, type }) => types.get(name) !== type)
  return {
    types: new Map(retyped.map(({ name, type }) => [name, type])),
    added: columns.filter((column) => isAdded.has(column) && column.role !== 'key'),
  }
}

function isRebuilt({ types, added }: TableChanges): boolean {
  return types.size > 0 || added.length > MANY_COLUMNS
}

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
interface TableChanges {
  /** The new types of existing columns, by name. */
  types: ReadonlyMap<string, ColumnType>
  added: readonly Column[]
}

/**
 * Copies a table into a changed one that replaces it (https://sqlite.org/lang_altertable.html#otheralter).
 * Row ids stay, and so do users' indexes, triggers, views and foreign keys. Call it inside a transaction and
 * `withoutForeignKeys`.
 */
export function* rebuildTable(table: string, { types, added }: TableChanges): Rule<void> {
  const keys = yield* one<{ foreign_keys: number }>('PRAGMA foreign_keys')
  if (keys?.foreign_keys !== 0) throw new Error('foreign keys are on')
  const copy = nameOfCopy(table)
  const belongings = yield* belongingsOf(table)
  yield* createCopy(table, types)
  yield* exec(added.flatMap((column) => addColumnSql(SQLITE, copy, column)))
  yield* copyRows(table, types)
  yield* exec([
    `DROP TABLE ${quoted(table)}`,
    `ALTER TABLE ${quoted(copy)} RENAME TO ${quoted(table)}`,
    ...belongings,
  ])
}

function nameOfCopy(table: string): string {
  return `_new_${table}`
}

/** The SQL that declares a table; null if there is none. */
function* declarationOf(table: string): Rule<string | null> {
  const found = yield* one<{ sql: string }>(
    "SELECT sql FROM sqlite_schema WHERE type = 'table' AND name = :table",
    { table },
  )
  return found?.sql ?? null
}

/** The SQL of the indexes and triggers of a table or view. NOCASE: a trigger names its table as the user typed it. */
function* belongingsOf(table: string): Rule<string[]> {
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

/** Names, texts and comments, with the type behind a name. A field's name may look like any SQL, so only whole tokens are replaced. */
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
function* copyRows(table: string, types: ReadonlyMap<string, ColumnType>): Rule<void> {
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
    // As text: a row id may be too large for a number. LEAST_ROW_ID is below all row ids that rows have.
    const last = yield* one<{ last: string }>(
      `SELECT CAST(coalesce(max(_rowid_), ${LEAST_ROW_ID}) AS TEXT) AS last FROM ${to}`,
    )
    rows = yield* run(copy, { last: last?.last ?? '' })
  }
}

const LEAST_ROW_ID = '-9223372036854775808'
