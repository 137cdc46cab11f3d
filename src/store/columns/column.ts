export type ColumnType = 'INTEGER' | 'REAL' | 'TEXT'

/** What is bound to a statement: INTEGER values as bigint (a JavaScript number is stored as REAL), REAL as number, TEXT as string. */
export type SqlValue = string | number | bigint | null

/** One discovered column of a collection's table. */
export interface Column {
  name: string
  /** Where its values stand in an item, as SQLite writes it: `$.customer.email`. */
  path: string
  type: ColumnType
  /** `text` is the column NAME__text beside a `value` column of the same path. */
  role: 'key' | 'value' | 'text'
  /** Holds an integer that a double would round, so that INTEGER must not become REAL. */
  wide: boolean
}

/** How a column of one catalog differs from that of an earlier one; `column` is as it is in the later one. */
export interface ColumnChange {
  /** `type`: it has another type. `wide`: its type stays, but it may not become REAL any more. */
  kind: 'add' | 'type' | 'wide'
  column: Column
}

export interface ColumnWarning {
  kind: 'text-sibling' | 'too-many-columns'
  /** The new column NAME__text; absent where no column could be made. */
  column?: string
  path: string
  message: string
}

/** The most columns of a table that are discovered: keys and __text columns included, our own not. */
export const MOST_COLUMNS = 500
