import { SQLITE_LIMITS } from '../../columns/column.ts'
import {
  isOfChanges,
  type Listed,
  OWN_TIME,
  rowsOf,
  type SelectedRows,
  type Selection,
  type SentItem,
  selectedColumns,
  sentColumns,
  sentItem,
  type TypedRows,
  type Value,
} from '../../core/reading.ts'
import { seqWindows, withinWindow } from '../../core/seq.ts'
import { withCasts } from '../driver.ts'
import type { Connection } from '../sql.ts'

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
