import { UsageError } from '../errors.ts'
import type { Rows } from '../store/core/query.ts'
import type { Rule } from '../store/core/sql.ts'
import { textPieces, writePieces } from './output/formats.ts'
import type { MirrorPlace } from './place.ts'
import type { Runtime } from './runtime.ts'

// How `query` and `export` read a mirror of either kind, and write what they find to standard output.

export type OutputFormat = 'table' | 'json' | 'ndjson' | 'csv' | 'parquet'

/** As they were typed. */
export type SqlParameters = readonly (readonly [name: string, value: string])[]

export interface Reader {
  /** Whether there is a mirror. */
  isThere(): boolean
  ask<T>(rule: Rule<T>): Promise<T>
  /** Throws UsageError for a statement that does not only read, and for wrong SQL: before MirrorError, where the mirror cannot be read. */
  query(sql: string, parameters: SqlParameters): Promise<Rows>
  /** Of the columns of a table or view, where a query does not say them all. */
  typesOf?(name: string): ReadonlyMap<string, string>
}

/** Writes the rows that `find` reads. `items`: their one column is the items of a collection, as JSON. Throws UsageError and MirrorError. */
export async function writeRows(
  runtime: Runtime,
  place: MirrorPlace,
  format: OutputFormat,
  find: (reader: Reader) => Promise<Rows & { format?: 'items' }>,
): Promise<number> {
  const { stdout } = runtime
  const isTerminal = stdout.isTTY === true
  if (format === 'parquet' && isTerminal)
    throw new UsageError('Parquet is not for a terminal; write it to a file: > result.parquet')
  // Node reports a signal in the next turn of the event loop: one that came before is not lost.
  await runtime.yieldToEventLoop()
  // SQLite cannot be interrupted, but the process can be ended.
  runtime.dieOnSignal()
  const read = async (reader: Reader) => {
    const rows = await find(reader)
    // With its library: a small query starts faster without.
    const pieces =
      format === 'parquet'
        ? (await import('./output/parquet.ts')).parquet(rows)
        : textPieces(rows.format ?? format, rows, isTerminal)
    await writePieces(stdout, pieces)
  }
  const postgres = place.config?.postgres
  if (postgres) await (await import('./postgres.ts')).readServer(postgres, runtime, read)
  else await (await import('./file.ts')).readFile(place, read)
  return 0
}
