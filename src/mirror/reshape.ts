import type { Connection } from './database.ts'
import { withColumn, withType } from './declaration.ts'
import { quoted } from './sql.ts'

// Changes of a table that touch none of its rows, however many there are: what is declared is written anew, as
// https://sqlite.org/lang_altertable.html, 7, describes.

/**
 * Has an INTEGER column of a table become REAL. SQLite itself stores a whole number in a REAL column as an integer and
 * reads it back as REAL, so the rows are right as they stand (https://sqlite.org/datatype3.html, 2). Never for a column
 * that holds integers which a double would round.
 */
export function redeclare(connection: Connection, table: string, column: string): void {
  const sql = withType(declarationOf(connection, table) ?? '', column, 'INTEGER', 'REAL')
  if (sql === null) throw new Error(`the declaration of column ${column} cannot be found`)
  editSchema(connection, [{ name: table, sql }])
}

/**
 * Adds a column behind the others; old rows read as null there. ALTER TABLE would look through all rows of a STRICT table
 * each time: more than a second for a million.
 */
export function addColumn(connection: Connection, table: string, column: string, type: string): void {
  const sql = withColumn(declarationOf(connection, table) ?? '', column, type)
  // A column of that name that a user made is for ALTER TABLE to refuse.
  if (sql === null || hasColumn(connection, table, column))
    connection.exec(`ALTER TABLE ${quoted(table)} ADD COLUMN ${quoted(column)} ${type}`)
  else editSchema(connection, [{ name: table, sql }])
}

/** The text that declared a table; undefined where there is none of that name. */
export function declarationOf(connection: Connection, table: string): string | undefined {
  const schema = connection.prepare("SELECT sql FROM sqlite_schema WHERE type = 'table' AND name = ?").pluck()
  return schema.get(table) as string | undefined
}

function hasColumn(connection: Connection, table: string, column: string): boolean {
  const sql = 'SELECT 1 FROM pragma_table_xinfo(?) WHERE name = ? COLLATE NOCASE'
  return connection.prepare(sql).get(table, column) !== undefined
}

/** A line of SQLite's own table of tables and indexes as it shall be. */
export interface SchemaEdit {
  name: string
  sql?: string
  /** The first page of the rows. */
  rootpage?: number
}

export function editSchema(connection: Connection, edits: readonly SchemaEdit[]): void {
  unsafely(connection, () => {
    connection.pragma('writable_schema = ON')
    try {
      const edit = connection.prepare(
        `UPDATE sqlite_schema SET sql = coalesce(?, sql), rootpage = coalesce(?, rootpage)
         WHERE type IN ('table', 'index') AND name = ?`,
      )
      for (const { name, sql, rootpage } of edits) edit.run(sql ?? null, rootpage ?? null, name)
    } finally {
      connection.pragma('writable_schema = OFF')
    }
  })
  announceSchema(connection)
}

/** Has every connection, this one too, read again what is known of the tables, which may have changed without them. */
export function announceSchema(connection: Connection): void {
  unsafely(connection, () => {
    const version = connection.pragma('schema_version', { simple: true }) as number
    connection.pragma(`schema_version = ${version + 1}`)
  })
}

function unsafely(connection: Connection, task: () => void): void {
  connection.unsafeMode(true)
  try {
    task()
  } finally {
    connection.unsafeMode(false)
  }
}
