import type { TypedRows } from '../../store/core/reading.ts'
import type { Dialect, Rule } from '../../store/core/sql.ts'
import { csvFormat } from '../output/formats/csv.ts'
import { type Batches, type Format, formatted } from '../output/formats/format.ts'
import { itemFormat, jsonFormat, ndjsonFormat } from '../output/formats/json.ts'
import { tableFormat } from '../output/formats/table.ts'
import { exportedRows } from './exported.ts'

/** At once from a file, later from a server. */
type MaybePromise<T> = T | Promise<T>

/** What `query` or `export` asks of a mirror. */
export interface ReadingTask {
  database: string
  /** Whether the user named the file with `--database`. */
  isCopy: boolean
  /** Whether the output is a terminal, which control characters must not reach. */
  isTerminal: boolean
  /** The collections of the configuration. */
  configured: readonly string[]
  work: QueryWork | ExportWork
}

export type OutputFormat = 'table' | 'json' | 'ndjson' | 'csv' | 'parquet'

export interface QueryWork {
  kind: 'query'
  sql: string
  format: OutputFormat
  parameters: readonly (readonly [name: string, value: string])[]
}

export interface ExportWork {
  kind: 'export'
  name: string
  format: OutputFormat
  /** Null: all. */
  organizations: NamedOrganizations | null
}

export interface NamedOrganizations {
  /** Of the configuration. */
  ids: readonly string[]
  /** Names or ids that the mirror may know: it keeps the rows of organizations that left the configuration. */
  typed: readonly string[]
}

/** Rows with the names and types of their columns. */
export interface ReadRows extends Pick<TypedRows, 'columns' | 'types'> {
  batches: Batches
}

/** A mirror of either kind, as far as it is read. */
export interface ReadableMirror {
  dialect: Dialect
  ask<T>(rule: Rule<T>): MaybePromise<T>
  /** Throws UsageError for a statement that does not only read, and for wrong SQL. */
  query(sql: string, parameters: QueryWork['parameters']): MaybePromise<ReadRows>
}

/** What the task writes. */
export async function written(
  mirror: ReadableMirror,
  { work, configured, isTerminal }: ReadingTask,
): Promise<AsyncIterable<Uint8Array>> {
  if (work.kind === 'query') {
    const rows = await mirror.query(work.sql, work.parameters)
    return formatted(await formatOf(work.format, rows, isTerminal), rows.batches)
  }
  const { areItems, ...rows } = await exportedRows(mirror, work, configured)
  const format = areItems ? itemFormat(isTerminal) : await formatOf(work.format, rows, isTerminal)
  return formatted(format, rows.batches)
}

async function formatOf(
  format: OutputFormat,
  { columns, types }: Pick<ReadRows, 'columns' | 'types'>,
  isTerminal: boolean,
): Promise<Format<string | Uint8Array>> {
  if (format === 'csv') return csvFormat(columns, isTerminal)
  if (format === 'table') return tableFormat(columns, isTerminal)
  if (format === 'json') return jsonFormat(columns, isTerminal)
  if (format === 'ndjson') return ndjsonFormat(columns, isTerminal)
  // With its library: a small query starts faster without.
  const { parquetFormat } = await import('../output/formats/parquet.ts')
  return parquetFormat({ columns, types })
}
