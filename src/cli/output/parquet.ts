import { zstdCompressSync } from 'node:zlib'
import { ByteWriter, ParquetWriter, schemaFromColumnData } from 'hyparquet-writer'
import { UsageError } from '../../errors.ts'
import type { Rows, Value } from '../../store/core/query.ts'
import { base64, type Pieces, type Row } from './formats.ts'

/** A row group ends at either: readers skip whole groups, and memory holds one. */
const GROUP_ROWS = 20_000
const GROUP_CHARACTERS = 16 * 1024 * 1024

type Kind = 'INT64' | 'DOUBLE' | 'STRING'

/**
 * A Parquet file, compressed by zstd, a row group at a time. A column of no known type (of a query that works it out) has that of its values in
 * the first group. Throws UsageError for a value that its column's type cannot hold.
 */
export async function* parquet({ columns, types, batches }: Rows): Pieces {
  const writer = new ByteWriter()
  let file: ParquetWriter | null = null
  let kinds: Kind[] = []
  let group: Row[] = []
  let characters = 0
  const valuesAt = (at: number) => group.map((row) => row[at] ?? null)

  function writeGroup(): ParquetWriter {
    if (!file) {
      kinds = columns.map((_, at) => kindOf(types[at] ?? '', valuesAt(at)))
      const columnData = columns.map((name, at) => ({ name, data: [], type: kinds[at] ?? 'STRING' }))
      const schema = schemaFromColumnData({ columnData })
      const compressors = { ZSTD: (input: Uint8Array) => zstdCompressSync(input) }
      file = new ParquetWriter({ writer, schema, codec: 'ZSTD', compressors })
    }
    const columnData = columns.map((name, at) => ({
      name,
      data: valuesAt(at).map((value) => cellOf(value, kinds[at] ?? 'STRING', name)),
    }))
    if (group.length > 0) void file.write({ columnData, rowGroupSize: group.length })
    group = []
    characters = 0
    return file
  }

  /** What was written since the last call, as a copy: the writer uses its buffer again. */
  function taken(): Uint8Array {
    const copy = writer.getBytes().slice()
    writer.index = 0
    return copy
  }

  for await (const rows of batches) {
    for (const row of rows) {
      group.push(row)
      for (const value of row) if (typeof value === 'string') characters += value.length
      if (group.length < GROUP_ROWS && characters < GROUP_CHARACTERS) continue
      writeGroup()
      yield taken()
    }
  }
  void writeGroup().finish()
  yield taken()
}

/** By the declared type, else by the values; text if nothing else fits: anything can be written as text. */
function kindOf(type: string, values: readonly Value[]): Kind {
  if (/INT/i.test(type)) return 'INT64'
  if (/REAL|FLOA|DOUB/i.test(type)) return 'DOUBLE'
  const found = values.filter((value) => value !== null)
  if (/TEXT|CHAR/i.test(type) || found.length === 0) return 'STRING'
  if (found.every((value) => typeof value === 'bigint')) return 'INT64'
  return found.every((value) => realOf(value) !== null) ? 'DOUBLE' : 'STRING'
}

/** Throws UsageError for a value of another type than its column's: it comes from somebody else's table or from an expression. */
function cellOf(value: Value, kind: Kind, column: string): string | number | bigint | null {
  if (value === null) return null
  if (kind === 'STRING') return value instanceof Uint8Array ? base64(value) : String(value)
  const cell = kind === 'DOUBLE' ? realOf(value) : typeof value === 'bigint' ? value : null
  if (cell !== null) return cell
  throw new UsageError(
    `column ${column}: a value is no ${kind === 'INT64' ? 'INTEGER' : 'REAL'}, as the column's type or its first rows say, so no Parquet can be written; take csv, or have the SQL of a query CAST it`,
  )
}

/** Null for a value that a double cannot hold. */
function realOf(value: Value): number | null {
  if (typeof value === 'number') return value
  return typeof value === 'bigint' && BigInt(Number(value)) === value ? Number(value) : null
}
