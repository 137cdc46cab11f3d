import { zstdCompressSync } from 'node:zlib'
import { ByteWriter, ParquetWriter } from 'hyparquet-writer'
import { UsageError } from '../../errors.ts'
import type { TypedRows, Value } from '../../store/core/reading.ts'
import { printable } from '../../text.ts'
import { type Format, numberText } from './formats.ts'

/** A row group ends at either: readers skip whole groups, and memory holds one. */
const GROUP_ROWS = 20_000
const GROUP_CHARACTERS = 16 * 1024 * 1024

const PHYSICAL = {
  INTEGER: { type: 'INT64' },
  REAL: { type: 'DOUBLE' },
  TEXT: { type: 'BYTE_ARRAY', converted_type: 'UTF8' },
} as const

type Kind = keyof typeof PHYSICAL

/**
 * A Parquet file, compressed by zstd, a row group at a time: INT64, DOUBLE and UTF8. A column of no known type (of a query that works it out)
 * has that of its values in the first group. Throws UsageError for a value that its column's type cannot hold.
 */
export function parquetFormat({ columns, types }: Pick<TypedRows, 'columns' | 'types'>): Format {
  const writer = new ByteWriter()
  let file: { parquet: ParquetWriter; kinds: Kind[] } | null = null
  let data: Value[][] = columns.map(() => [])
  let rows = 0
  let characters = 0

  function begin(): { parquet: ParquetWriter; kinds: Kind[] } {
    const kinds = columns.map((_, at) => kindOf(types[at] ?? '', data[at] ?? []))
    const elements = columns.map((name, at) => ({
      name,
      repetition_type: 'OPTIONAL' as const,
      ...PHYSICAL[kinds[at] ?? 'TEXT'],
    }))
    const schema = [{ name: 'root', num_children: columns.length }, ...elements]
    const compressors = { ZSTD: (input: Uint8Array) => zstdCompressSync(input) }
    return { parquet: new ParquetWriter({ writer, schema, codec: 'ZSTD', compressors }), kinds }
  }

  /** What was written since the last call, as a copy: the writer uses its buffer again. */
  function taken(): Uint8Array {
    const copy = writer.getBytes().slice()
    writer.index = 0
    return copy
  }

  function writeGroup(): Uint8Array {
    file ??= begin()
    const { parquet, kinds } = file
    const columnData = columns.map((name, at) => ({
      name,
      data: (data[at] ?? []).map((value) => cellOf(value, kinds[at] ?? 'TEXT', name)),
    }))
    if (rows > 0) void parquet.write({ columnData, rowGroupSize: rows })
    data = columns.map(() => [])
    rows = characters = 0
    return taken()
  }

  return {
    begin: () => '',
    row(row) {
      rows++
      for (const [at, values] of data.entries()) {
        const value = row[at] ?? null
        values.push(value)
        if (typeof value === 'string') characters += value.length
      }
      return rows < GROUP_ROWS && characters < GROUP_CHARACTERS ? '' : writeGroup()
    },
    end() {
      const last = writeGroup()
      void file?.parquet.finish()
      return Buffer.concat([last, taken()])
    },
  }
}

/** By the declared type, else by the values; text if nothing else fits: anything can be written as text. */
function kindOf(type: string, values: readonly Value[]): Kind {
  if (/INT/i.test(type)) return 'INTEGER'
  if (/REAL|FLOA|DOUB/i.test(type)) return 'REAL'
  const found = values.filter((value) => value !== null)
  if (/TEXT|CHAR/i.test(type) || found.length === 0) return 'TEXT'
  if (found.every((value) => typeof value === 'bigint')) return 'INTEGER'
  return found.every((value) => realOf(value) !== null) ? 'REAL' : 'TEXT'
}

/** Throws UsageError for a value of another type than its column's: it comes from somebody else's table or from an expression. */
function cellOf(value: Value, kind: Kind, column: string): string | number | bigint | null {
  if (value === null) return null
  if (kind === 'TEXT') {
    if (typeof value === 'number') return numberText(value)
    return value instanceof Uint8Array ? Buffer.from(value).toString('base64') : String(value)
  }
  const cell = kind === 'REAL' ? realOf(value) : typeof value === 'bigint' ? value : null
  if (cell !== null) return cell
  throw new UsageError(
    `column ${printable(column, 100)}: a value is no ${kind}, as the column's type or its first ${GROUP_ROWS.toLocaleString('en')} rows say, so no Parquet can be written; take csv, or have the SQL of a query CAST it`,
  )
}

/** Null for a value that a double cannot hold. */
function realOf(value: Value): number | null {
  if (typeof value === 'number') return value
  return typeof value === 'bigint' && BigInt(Number(value)) === value ? Number(value) : null
}
