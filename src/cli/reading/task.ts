import type { ErrorCode } from '../../errors.ts'

/** What the reading process is asked for. */
export interface ReadingTask {
  database: string
  /** Whether the user named the file with `--database`. */
  isCopy: boolean
  /** Whether the output is a terminal, which control characters must not reach. */
  isTerminal: boolean
  /** The columns of the terminal. */
  width: number | null
  work: QueryWork | ExportWork | DescribeWork
}

export type QueryFormat = 'table' | 'json' | 'ndjson' | 'csv' | 'parquet'

export interface QueryWork {
  kind: 'query'
  sql: string
  format: QueryFormat
  parameters: readonly (readonly [name: string, value: string])[]
}

export type ExportFormat = 'csv' | 'ndjson' | 'parquet'

export interface ExportWork {
  kind: 'export'
  name: string
  format: ExportFormat
  /** Null: all. */
  organizations: NamedOrganizations | null
  /** The collections of the configuration. */
  configured: readonly string[]
  /** As the mirror writes times. */
  since: string | null
  /** A whole number. */
  sinceSeq: string | null
  envelope: boolean
  bom: boolean
}

export interface NamedOrganizations {
  /** Of the configuration. */
  ids: readonly string[]
  /** Names or ids that the file is to know: it keeps the rows of organizations that left the configuration. */
  typed: readonly string[]
}

export interface DescribeWork {
  kind: 'describe'
  name: string | null
  configured: readonly string[]
  json: boolean
  /** Epoch milliseconds. */
  now: number
}

/** The last message of the reading process. */
export type ReadingEnd =
  | { kind: 'done'; notes: string[] }
  | { kind: 'failed'; of: 'usage'; message: string }
  | { kind: 'failed'; of: 'mirror'; message: string }
  | { kind: 'failed'; of: 'job'; code: ErrorCode; message: string }
  | { kind: 'failed'; of: 'other'; message: string; stack?: string }
