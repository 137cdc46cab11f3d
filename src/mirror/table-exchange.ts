import type { Connection } from './database.ts'
import { withName } from './declaration.ts'
import { declaredIndexes, nameOfCopy, stopFollowing } from './followed-copy.ts'
import { declarationOf, editSchema, type SchemaEdit } from './reshape.ts'
import { quoted } from './sql.ts'

/**
 * Has each of the tables hold the rows of its copy, which must be whole, and be declared as that one is; the copy gets the
 * old rows. Nothing is renamed and no row is touched: in SQLite's own list of tables the two, and their indexes, exchange
 * the places where their rows begin. So it takes no time, and views, triggers and indexes, our users' own too, stay as
 * they are. Inside the caller's transaction.
 */
export function exchange(connection: Connection, tables: readonly string[]): void {
  for (const table of tables) stopFollowing(connection, table)
  const anew = tables.flatMap((table) => dropUnpaired(connection, table))
  editSchema(
    connection,
    tables.flatMap((table) => exchanged(connection, table)),
  )
  for (const sql of anew) connection.exec(sql)
}

/**
 * Takes away the indexes that only one of table and copy has, since a user made or dropped one meanwhile. Returns how
 * those of the table are declared, to be made anew.
 */
function dropUnpaired(connection: Connection, table: string): string[] {
  const own = declaredIndexes(connection, table)
  const copied = declaredIndexes(connection, nameOfCopy(table))
  const ownAlone = own.filter(({ name }) => !copied.some((other) => other.name === nameOfCopy(name)))
  const copiedAlone = copied.filter(({ name }) => !own.some((other) => nameOfCopy(other.name) === name))
  for (const { name } of [...ownAlone, ...copiedAlone]) connection.exec(`DROP INDEX ${quoted(name)}`)
  return ownAlone.map(({ sql }) => sql)
}

function exchanged(connection: Connection, table: string): SchemaEdit[] {
  const copy = nameOfCopy(table)
  const sqlOf = (name: string, of: string) => withName(declarationOf(connection, of) ?? '', name) ?? ''
  return [
    { name: table, sql: sqlOf(table, copy) },
    { name: copy, sql: sqlOf(copy, table) },
    ...[[table, copy] as const, ...indexPairs(connection, table)].flatMap(([one, other]) => [
      { name: one, rootpage: rootOf(connection, other) },
      { name: other, rootpage: rootOf(connection, one) },
    ]),
  ]
}

/** The indexes of a table, those of its primary key included, with the ones of its copy. */
function indexPairs(connection: Connection, table: string): [string, string][] {
  const own = `sqlite_autoindex_${table}_`
  const names = connection
    .prepare(`SELECT name FROM sqlite_schema WHERE type = 'index' AND tbl_name = ?`)
    .pluck()
    .all(table) as string[]
  return names.map((name) => [
    name,
    name.startsWith(own)
      ? `sqlite_autoindex_${nameOfCopy(table)}_${name.slice(own.length)}`
      : nameOfCopy(name),
  ])
}

function rootOf(connection: Connection, name: string): number {
  const sql = `SELECT rootpage FROM sqlite_schema WHERE type IN ('table', 'index') AND name = ?`
  const root = connection.prepare(sql).pluck().get(name)
  if (typeof root !== 'number') throw new Error(`${name} has no rows to exchange`)
  return root
}
