import { UsageError } from '../../../errors.ts'
import { printable } from '../../../text.ts'
import { belongsTo } from '../../core/names.ts'
import { belonging, type Listed, type ListedColumn } from '../../core/reading.ts'
import type { Connection } from '../sql.ts'

/** The collections that the file holds. */
export function collectionsOf(connection: Connection): string[] {
  const sql = hasTable(connection, 'sync_collections')
    ? 'SELECT name FROM sync_collections ORDER BY name'
    : 'SELECT collection FROM sync_status UNION SELECT collection FROM sync_columns'
  return connection.prepare(sql).pluck().all() as string[]
}

/** The tables and views of the collections of this file, by name. */
export function listedNames(connection: Connection): string[] {
  const sql = "SELECT name FROM sqlite_schema WHERE type IN ('table', 'view') ORDER BY name"
  const names = connection.prepare(sql).pluck().all() as string[]
  return belonging(collectionsOf(connection), names)
}

/**
 * The table or view of this name; null if it is none of a collection. Throws UsageError for a view that a user has put there, if it
 * cannot be read or does not tell the rows of organizations apart.
 */
export function findListed(connection: Connection, name: string): Listed | null {
  const collection = collectionsOf(connection).find((one) => belongsTo(one, name))
  const type = relationKind(connection, name)
  if (collection === undefined || type === undefined) return null
  // As declared; of a view's column the type that SQLite derives, which it writes as INT.
  const columns = listedColumns(connection, name).map((column) => ({
    ...column,
    type: column.type === 'INT' ? 'INTEGER' : column.type,
  }))
  if (!columns.some((column) => column.name === '_organization_id'))
    throw foreign(name, 'has no column _organization_id, which tells the rows of organizations apart')
  return { name, collection, keys: keyColumnsOf(connection, collection), isTable: type === 'table', columns }
}

function listedColumns(connection: Connection, name: string): ListedColumn[] {
  try {
    return connection.prepare('SELECT name, type FROM pragma_table_info(?)').all(name) as ListedColumn[]
  } catch (error) {
    // A view over what is no longer there.
    const isOfView = error instanceof Error && 'code' in error && error.code === 'SQLITE_ERROR'
    throw isOfView ? foreign(name, `cannot be read (${printable(error.message, 200)})`) : error
  }
}

function foreign(name: string, why: string): UsageError {
  return new UsageError(
    `${printable(name)} ${why}, so it was not made by this program; "admin-mirror query" reads what can be read. If it stands in the place of one of ours, drop it, and "admin-mirror rebuild" makes ours again`,
  )
}

/** By the table: a copy need not say more. */
function keyColumnsOf(connection: Connection, collection: string): string[] {
  const sql = "SELECT name FROM pragma_table_info(?) WHERE pk > 0 AND name <> '_organization_id' ORDER BY pk"
  return connection.prepare(sql).pluck().all(collection) as string[]
}

export function hasTable(connection: Connection, name: string): boolean {
  return relationKind(connection, name) === 'table'
}

function relationKind(connection: Connection, name: string): string | undefined {
  const sql = "SELECT type FROM sqlite_schema WHERE type IN ('table', 'view') AND name = ?"
  return connection.prepare(sql).pluck().get(name) as string | undefined
}
