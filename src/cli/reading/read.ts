import type { Listed, TypedRows, Value } from '../../store/core/reading.ts'
import type { ReadStatement } from '../../store/core/selection.ts'
import type { Dialect, Rule } from '../../store/core/sql.ts'
import { type Batches, type Format, formatted, type Tell } from '../output/formats/format.ts'
import { tableFormat } from '../output/formats/table.ts'

/** At once from a file, later from a server. */
type MaybePromise<T> = T | Promise<T>

/** What `query` or `export` asks of a mirror, and where its output goes. */
export interface ReadingTask {
  database: string
  /** Whether the user named the file with `--database`. */
  isCopy: boolean
  /** Whether the output is a terminal, which control characters must not reach. */
  isTerminal: boolean
  /** The columns of the terminal. */
  width: number | null
  /** The collections of the configuration. */
  configured: readonly string[]
  work: ReadingWork
}

export type ReadingWork = QueryWork | ExportWork

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
  /** Names or ids that the mirror may know: it keeps the rows of organizations that left the configuration. */
  typed: readonly string[]
}

/** Rows with the names and types of their columns. */
interface ReadRows extends Pick<TypedRows, 'columns' | 'types'> {
  batches: Batches<Value[]>
}

/** What a task is done on: a mirror of either kind. */
export interface ReadableMirror {
  /** Throws UsageError for a statement that does not only read, and for wrong SQL. */
  query(work: Pick<QueryWork, 'sql' | 'parameters'>): MaybePromise<ReadRows>
  /** How its rules and selections are written. */
  dialect: Dialect
  ask<T>(rule: Rule<T>): MaybePromise<T>
  /** The table or view of a collection with this name. */
  find(name: string): MaybePromise<Listed | null>
  /** The rows of a selection. */
  select(read: ReadStatement): Batches<Value[]>
}

/** What the task writes of a mirror of either kind. Loads only what it needs, so that a small one starts fast. */
export async function written(
  mirror: ReadableMirror,
  { work, configured, isTerminal, width }: ReadingTask,
  tell: Tell,
): Promise<AsyncIterable<Uint8Array>> {
  if (work.kind === 'query') {
    const { batches, ...head } = await mirror.query(work)
    return formatted(await queryFormat(head, { format: work.format, isTerminal, width }), batches, tell)
  }
  const { exported } = await import('./exported.ts')
  return exported(mirror, work, { configured, isTerminal }, tell)
}

/** How `query` writes the rows of a result. */
async function queryFormat(
  { columns, types }: Pick<TypedRows, 'columns' | 'types'>,
  { format, isTerminal, width }: Pick<ReadingTask, 'isTerminal' | 'width'> & { format: QueryFormat },
): Promise<Format<readonly Value[], string | Uint8Array>> {
  if (format === 'parquet') {
    const { parquetFormat } = await import('../output/formats/parquet.ts')
    return parquetFormat({ columns, types })
  }
  if (format === 'csv') {
    const { csvFormat } = await import('../output/formats/csv.ts')
    return csvFormat(columns, { safe: isTerminal })
  }
  if (format === 'table') return tableFormat(columns, width)
  const { jsonFormat, ndjsonFormat } = await import('../output/formats/json.ts')
  return format === 'json' ? jsonFormat(columns, isTerminal) : ndjsonFormat(columns, isTerminal)
}
