import { TABLE_KINDS, tableName } from '../../columns/catalog.ts'
import type { ColumnType } from '../../columns/column.ts'
import { addColumnSql, isTyped } from '../../core/declarations.ts'
import type { Alteration } from '../../core/fit.ts'
import { all, exec, one, quoted, type Rule } from '../../core/sql.ts'
import { selectVersions } from '../../core/versions-view.ts'
import { type Connection, SQLITE } from '../driver.ts'
import { changesSql, ELEMENTS, MARK } from './views.ts'

/** Runs within `withoutForeignKeys`. */
export const ALTERATION: Alteration = {
  dialect: SQLITE,
  *alterTables(collection, changes) {
    for (const kind of TABLE_KINDS) {
      const table = tableName(collection, kind)
      const known = yield* SQLITE.columnTypes(table)
      const columns = changes
        .filter(({ column }) => column.role === 'key' || isTyped(kind))
        .map(({ column }) => column)
      const types = columns.filter(({ name, type }) => known.has(name) && known.get(name) !== type)
      if (types.length > 0) yield* rebuildTable(table, new Map(types.map(({ name, type }) => [name, type])))
      const added = columns.filter(({ name }) => !known.has(name))
      yield* exec(added.map((column) => addColumnSql(SQLITE, table, column)))
    }
  },
  *makeView(name, select) {
    const wanted = `CREATE VIEW ${quoted(name)} AS\n${select}`
    const known = yield* one<{ sql: string }>(
      "SELECT sql FROM sqlite_schema WHERE type = 'view' AND name = :name COLLATE NOCASE",
      { name },
    )
    if (known?.sql === wanted) return
    yield* exec([`DROP VIEW IF EXISTS ${quoted(name)}`, wanted])
  },
  elements: ELEMENTS,
  changes: (shape) => changesSql(SQLITE, shape),
  versions: (shape) => `${MARK}\n${selectVersions(shape)}`,
}

/**
 * Runs `task`, which may rebuild tables, outside any transaction: within one, SQLite ignores `foreign_keys`.
 * With foreign keys on, DROP TABLE deletes the rows first, and a user's ON DELETE CASCADE fires; without
 * `legacy_alter_table`, RENAME fails while a view names the dropped table.
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

/**
 * Copies a table into one with other types of columns that replaces it (https://sqlite.org/lang_altertable.html#otheralter). Row ids and
 * indexes stay. It happens some five times in the life of a mirror. Call it inside a transaction and `withoutForeignKeys`.
 */
function* rebuildTable(table: string, types: ReadonlyMap<string, ColumnType>): Rule<void> {
  const keys = yield* one<{ foreign_keys: number }>('PRAGMA foreign_keys')
  if (keys?.foreign_keys !== 0) throw new Error('foreign keys are on')
  const copy = `_new_${table}`
  const declared = yield* one<{ sql: string }>(
    "SELECT sql FROM sqlite_schema WHERE type = 'table' AND name = :table",
    { table },
  )
  // NOCASE: a trigger names its table as the user typed it.
  const belongings = yield* all<{ sql: string }>(
    `
      SELECT sql
      FROM sqlite_schema
      WHERE type IN ('index', 'trigger') AND tbl_name = :table COLLATE NOCASE AND sql IS NOT NULL
      ORDER BY _rowid_
    `,
    { table },
  )
  const columns = yield* declaredColumns(table)
  const wanted = columns.map((column) => ({ ...column, type: types.get(column.name) ?? column.type }))
  const declaration = withTypes(declared?.sql ?? '', types)
  yield* exec([declaration.replace(`CREATE TABLE ${quoted(table)}`, () => `CREATE TABLE ${quoted(copy)}`)])
  // A wrong edit of the declaration, which a user may have changed, is an SQL error, or shows here.
  if (JSON.stringify(yield* declaredColumns(copy)) !== JSON.stringify(wanted))
    throw new Error(`the table ${table} is declared in a way that cannot be changed here`)
  const names = [...(yield* SQLITE.columnTypes(table)).keys()]
  const values = names.map((name) =>
    types.has(name) ? `CAST(${quoted(name)} AS ${types.get(name)})` : quoted(name),
  )
  // `_rowid_` is the only name of the row id that no field can have.
  yield* exec([
    `INSERT INTO ${quoted(copy)} (${['_rowid_', ...names.map(quoted)].join(', ')})
     SELECT ${['_rowid_', ...values].join(', ')} FROM ${quoted(table)} ORDER BY _rowid_`,
    `DROP TABLE ${quoted(table)}`,
    `ALTER TABLE ${quoted(copy)} RENAME TO ${quoted(table)}`,
    ...belongings.map(({ sql }) => sql),
  ])
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

/** About how many rows a table has. */
export function* rowsIn(table: string): Rule<number> {
  const row = yield* one<{ rows: number | null }>(`SELECT max(_rowid_) AS rows FROM ${quoted(table)}`)
  return row?.rows ?? 0
}
