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

export type ColumnChange =
  | { kind: 'add'; column: Column }
  /** The column was INTEGER and is REAL now. */
  | { kind: 'widen'; column: Column }
  /** The type stays; from now on the column holds an integer that a double would round. */
  | { kind: 'wide'; column: Column }

export interface ColumnWarning {
  kind: 'text-sibling' | 'too-many-columns'
  /** The new column NAME__text; absent where no column could be made. */
  column?: string
  path: string
  message: string
}

/** The most columns of a table that are discovered: keys and __text columns included, our own not. */
export const MOST_COLUMNS = 500
