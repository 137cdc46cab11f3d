import type { Connection } from './database.ts'
import { quoted } from './sql.ts'
import { columnNames, createSql, KINDS, type TableKind, type TableShape, tableName } from './tables.ts'

/**
 * Has an INTEGER column of a table become REAL without touching a row. SQLite itself stores a whole number in a REAL
 * column as an integer and reads it back as REAL, so the rows are right as they stand, and only the declaration has to
 * change (https://sqlite.org/datatype3.html, 2; the way to change it is the one of
 * https://sqlite.org/lang_altertable.html, 7). Never for a column that holds integers which a double would round.
 */
export function redeclare(connection: Connection, table: string, column: string): void {
  const schema = connection.prepare("SELECT sql FROM sqlite_schema WHERE type = 'table' AND name = ?").pluck()
  const sql = schema.get(table) as string
  unsafely(connection, () => {
    connection.pragma('writable_schema = ON')
    try {
      connection
        .prepare(`UPDATE sqlite_schema SET sql = ? WHERE type = 'table' AND name = ?`)
        .run(withReal(sql, column), table)
    } finally {
      connection.pragma('writable_schema = OFF')
    }
  })
  announceSchema(connection)
}

/** The declaration as it stands, columns that a user added included, but for this one type. */
function withReal(sql: string, column: string): string {
  // A column stands on a line of its own, or where ALTER TABLE put it.
  for (const before of ['\n  ', ', ']) {
    const [head = '', ...tails] = sql.split(`${before}${quoted(column)} INTEGER`)
    if (tails.length === 1) return `${head}${before}${quoted(column)} REAL${tails[0]}`
  }
  throw new Error(`the declaration of column ${column} cannot be found`)
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

/** Gives the key columns of all three tables the types that `shape` says, by writing them anew. */
export function retypeKeys(connection: Connection, shape: TableShape): void {
  // Without it a rename would refuse views that name the table while it is away, our users' own among them.
  connection.pragma('legacy_alter_table = ON')
  try {
    for (const kind of KINDS) rewrite(connection, shape, kind)
  } finally {
    connection.pragma('legacy_alter_table = OFF')
  }
}

function rewrite(connection: Connection, shape: TableShape, kind: TableKind): void {
  const name = tableName(shape.name, kind)
  const temporary = `_new_${name}`
  const columns = columnNames(shape, kind)
  // STRICT would refuse an integer in a TEXT column without the cast.
  const values = columns.map((column) => {
    const key = shape.keyColumns.indexOf(column)
    return key === -1 ? quoted(column) : `CAST(${quoted(column)} AS ${shape.keyTypes[key]})`
  })
  const attached = attachedSql(connection, name)
  connection.exec(createSql(shape, kind, temporary))
  connection.exec(
    `INSERT INTO ${quoted(temporary)} (${columns.map(quoted).join(', ')}) SELECT ${values.join(', ')} FROM ${quoted(name)}`,
  )
  connection.exec(`DROP TABLE ${quoted(name)}`)
  connection.exec(`ALTER TABLE ${quoted(temporary)} RENAME TO ${quoted(name)}`)
  for (const sql of attached) connection.exec(sql)
}

/** The indexes and triggers of a table, which go with it when it is dropped: ours, and those that users made. */
function attachedSql(connection: Connection, table: string): string[] {
  return connection
    .prepare(
      `SELECT sql FROM sqlite_schema WHERE tbl_name = ? AND type IN ('index', 'trigger') AND sql IS NOT NULL`,
    )
    .pluck()
    .all(table) as string[]
}
