import type { Connection } from './database.ts'
import {
  copyRows,
  createCopy,
  hasCopy,
  isAsDeclared,
  isFollowed,
  nameOfCopy,
  type Original,
  takeDown,
} from './followed-copy.ts'
import { exchange } from './table-exchange.ts'
import { type KeyType, KINDS, tableName } from './tables.ts'

// How the key columns of a collection become TEXT, which every row of its three tables has to be written anew for: row by
// row into copies beside them, a little in each transaction, while every process goes on to read and write the tables as
// they are; triggers carry over what changes in rows that are copied already. When all is copied the tables exchange
// their rows with the copies, in an instant, and the old rows are taken away a little at a time. All that is known of
// how far this has come stands in the file itself: whoever is killed, and whoever comes next or works at the same time,
// each step looks at what there is and does what comes next.

export interface Retyping {
  collection: string
  keyColumns: readonly string[]
  /** As the tables are declared. */
  from: readonly KeyType[]
  /** As they have to be. */
  to: readonly KeyType[]
}

/** These types, and TEXT where another process has begun to make a column so. */
export function withBegun(
  connection: Connection,
  { collection, keyColumns }: Pick<Retyping, 'collection' | 'keyColumns'>,
  types: readonly KeyType[],
): KeyType[] {
  const typeOf = connection.prepare('SELECT type FROM pragma_table_info(?) WHERE name = ?').pluck()
  const begun = tablesOf(collection).filter((table) => isFollowed(connection, table))
  return keyColumns.map((column, index) => {
    const isText = begun.some((table) => typeOf.get(nameOfCopy(table), column) === 'TEXT')
    return isText ? 'TEXT' : (types[index] ?? 'INTEGER')
  })
}

/** Copies up to so many rows. True when the tables have the new types, and the old rows lie in what were the copies. */
export function stepRetyping(connection: Connection, retyping: Retyping, rows: number): boolean {
  let left = rows
  for (const table of tablesOf(retyping.collection)) {
    left -= stepCopy(connection, { ...retyping, table }, left)
    if (left <= 0) return false
  }
  exchange(connection, tablesOf(retyping.collection))
  stepLeftovers(connection, retyping.collection, left)
  return true
}

/** Returns how many rows it has had its hands on: fewer than it may when the copy is whole. */
function stepCopy(connection: Connection, original: Original, rows: number): number {
  let left = rows
  if (!isFollowed(connection, original.table) || !isAsDeclared(connection, original)) {
    left -= takeDown(connection, original.table, left)
    if (hasCopy(connection, original.table)) return rows
    createCopy(connection, original)
  }
  return rows - left + copyRows(connection, original, left)
}

/** Whether anything stands beside the tables of a collection: copies under way, or old rows. */
export function hasLeftovers(connection: Connection, collection: string): boolean {
  return tablesOf(collection).some((table) => hasCopy(connection, table))
}

/** Takes away up to so many rows of what stands beside the tables. True when nothing is left of it. */
export function stepLeftovers(connection: Connection, collection: string, rows: number): boolean {
  let left = rows
  for (const table of tablesOf(collection)) {
    left -= takeDown(connection, table, left)
    if (left <= 0) return false
  }
  return true
}

function tablesOf(collection: string): string[] {
  return KINDS.map((kind) => tableName(collection, kind))
}
