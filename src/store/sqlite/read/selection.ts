import { systemCode, UsageError } from '../../../errors.ts'
import { printable } from '../../../text.ts'
import { SQLITE_LIMITS } from '../../columns/column.ts'
import { belongsTo } from '../../core/names.ts'
import {
  belonging,
  isOfChanges,
  type Listed,
  type ListedColumn,
  OWN_TIME,
  rowsOf,
  type SelectedRows,
  type Selection,
  type SentItem,
  selectedColumns,
  sentColumns,
  sentItem,
  seqWindows,
  type TypedRows,
  type Value,
  withinWindow,
} from '../../core/reading.ts'
import { withCasts } from '../driver.ts'
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
    if (!(error instanceof Error) || systemCode(error) !== 'SQLITE_ERROR') throw error
    // A view over what is no longer there.
    throw foreign(name, `cannot be read (${printable(error.message, 200)})`)
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

export const OWN_TIMES: readonly string[] = ['_first_seen_at', '_changed_at', '_valid_from', '_valid_to']

function isOwnTime(listed: Listed, column: string): boolean {
  return OWN_TIMES.includes(column) || (column === 'at' && isOfChanges(listed))
}

/** The rows of a table or view; the organization's name is a column behind its id. Throws UsageError. */
export function selectRows(connection: Connection, listed: Listed, selection: Selection): TypedRows {
  const { columns, expressions } = selectedColumns(listed)
  const query = queryOf(connection, listed, selection)
  const select = `SELECT ${expressions.join(', ')}`
  const { sinceSeq = null } = selection
  // The table of a copy has an index on the numbers.
  const isCut = sinceSeq !== null && !listed.isTable
  return {
    columns: columns.map(({ name }) => name),
    types: columns.map(({ name, type }) => (isOwnTime(listed, name) ? OWN_TIME : type)),
    rows: lazily(() =>
      isCut ? inWindows(connection, select, query, BigInt(sinceSeq)) : read(connection, select, query),
    ),
  }
}

function read(
  connection: Connection,
  select: string,
  { from, where, order, values }: Query,
): Iterable<Value[]> {
  const text = withCasts(`${select} ${from} WHERE ${where} ${order}`)
  return connection.prepare(text).raw().safeIntegers().iterate(values) as Iterable<Value[]>
}

/** All windows are of one moment, as one statement is. */
function* inWindows(connection: Connection, select: string, query: Query, since: bigint): Iterable<Value[]> {
  connection.exec('BEGIN')
  try {
    const windows = seqWindows(since)
    for (let next = windows.next(); !next.done; ) {
      const { ask, most, ...window } = next.value
      const where = `${query.where} AND ${withinWindow(window)}`
      if (ask === 'read') {
        yield* read(connection, select, { ...query, where })
        next = windows.next(0)
      } else {
        const text = withCasts(`SELECT count(*) FROM (SELECT 1 ${query.from} WHERE ${where} LIMIT ${most})`)
        next = windows.next(connection.prepare(text).pluck().get(query.values) as number)
      }
    }
  } finally {
    connection.exec('COMMIT')
  }
}

/** The items of a collection as they were sent. */
export function selectItems(connection: Connection, raw: Listed, selection: Selection): Iterable<SentItem> {
  const query = queryOf(connection, raw, selection)
  return lazily(function* () {
    const rows = read(connection, `SELECT ${sentColumns(raw.keys)}`, query)
    for (const row of rows as Iterable<string[]>) yield sentItem(row)
  })
}

/** A connection with a statement that has begun and not ended cannot be closed. */
function lazily<T>(begin: () => Iterable<T>): Iterable<T> {
  return { [Symbol.iterator]: () => begin()[Symbol.iterator]() }
}

interface Query extends SelectedRows {
  order: string
}

function queryOf(connection: Connection, listed: Listed, selection: Selection): Query {
  const { sinceSeq = null } = selection
  const inOrder = isInOrder(connection, listed) ? 'ORDER BY x._rowid_' : ''
  const order = sinceSeq === null ? inOrder : 'ORDER BY x."seq"'
  return { ...rowsOf(listed, selection, SQLITE_LIMITS), order }
}

/** A view has no rowid, and a table may be without. */
function isInOrder(connection: Connection, { name, isTable }: Listed): boolean {
  const sql = 'SELECT wr FROM pragma_table_list WHERE schema = ? AND name = ?'
  return isTable && connection.prepare(sql).pluck().get('main', name) === 0
}
