import { UsageError } from '../../errors.ts'
import type { TypedRows } from '../../store/core/reading.ts'
import type { Dialect, Rule } from '../../store/core/sql.ts'
import { kindOf, type MirrorPlace } from '../mirror.ts'
import {
  type Batches,
  csvFormat,
  type Format,
  itemFormat,
  jsonFormat,
  ndjsonFormat,
  tableFormat,
  writeRows,
} from '../output/formats.ts'
import type { Runtime } from '../runtime.ts'
import { exportedRows } from './exported.ts'

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
  /** Names or UUIDs; none: all. */
  organizations: readonly string[]
}

/** What `query` or `export` asks of a mirror. */
export interface ReadingTask extends MirrorPlace {
  work: QueryWork | ExportWork
}

/** At once from a file, later from a server. */
type MaybePromise<T> = T | Promise<T>

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

/** Does what `query` or `export` asks for, and writes what it finds to standard output. Throws UsageError and MirrorError. */
export async function runReading(runtime: Runtime, task: ReadingTask): Promise<number> {
  if (task.work.format === 'parquet' && runtime.stdout.isTTY === true)
    throw new UsageError('Parquet is not for a terminal; write it to a file: > result.parquet')
  // Node reports a signal in the next turn of the event loop: one that came before is not lost.
  await runtime.yieldToEventLoop()
  // SQLite cannot be interrupted, but the process can be ended.
  runtime.dieOnSignal()
  const { read } = await kindOf(task.config)
  await read(runtime, task)
  return 0
}

/** Writes what the task asks of this mirror. */
export async function writeResult(
  { stdout }: Pick<Runtime, 'stdout'>,
  mirror: ReadableMirror,
  { work, config }: ReadingTask,
): Promise<void> {
  const isTerminal = stdout.isTTY === true
  if (work.kind === 'query') {
    const rows = await mirror.query(work.sql, work.parameters)
    await writeRows(stdout, await formatOf(work.format, rows, isTerminal), rows.batches)
  } else {
    const { areItems, ...rows } = await exportedRows(mirror, work, config)
    const format = areItems ? itemFormat(isTerminal) : await formatOf(work.format, rows, isTerminal)
    await writeRows(stdout, format, rows.batches)
  }
}

async function formatOf(
  format: OutputFormat,
  { columns, types }: Pick<ReadRows, 'columns' | 'types'>,
  isTerminal: boolean,
): Promise<Format> {
  if (format === 'csv') return csvFormat(columns, isTerminal)
  if (format === 'table') return tableFormat(columns, isTerminal)
  if (format === 'json') return jsonFormat(columns, isTerminal)
  if (format === 'ndjson') return ndjsonFormat(columns, isTerminal)
  // With its library: a small query starts faster without.
  const { parquetFormat } = await import('../output/parquet.ts')
  return parquetFormat({ columns, types })
}
