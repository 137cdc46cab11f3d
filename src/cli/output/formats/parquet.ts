import { zstdCompressSync } from 'node:zlib'
import { ByteWriter, ParquetWriter } from 'hyparquet-writer'
import { UsageError } from '../../../errors.ts'
import { OWN_TIME, type TypedRows, type Value } from '../../../store/core/reading.ts'
import { printable } from '../../../text.ts'
import type { Format } from './format.ts'

/** A row group ends at either: readers skip whole groups, and memory holds one. */
const GROUP_ROWS = 20_000
const GROUP_CHARACTERS = 16 * 1024 * 1024

type Schema = ConstructorParameters<typeof ParquetWriter>[0]['schema']
type Cell = string | number | bigint | null
type Kind = 'INTEGER' | 'REAL' | 'TEXT' | 'TIME'

interface ParquetColumn {
  name: string
  kind: Kind
  /** Whether the first group should have shown the kind, and had no value. */
  isGuess: boolean
}

/**
 * A Parquet file, compressed by zstd, a row group at a time. Integers are INT64, fractions DOUBLE, our own times
 * TIMESTAMP; times of the API stay text, as they were sent. A column of no known type (of a query that works it out) has that of its values
 * in the first group. Throws UsageError for a value that its column's type cannot hold.
 */
export function parquetFormat({
  columns,
  types,
}: Pick<TypedRows, 'columns' | 'types'>): Format<readonly Value[], Uint8Array> {
  const bytes = new ByteWriter()
  let file: ParquetFile | null = null
  let group = emptyGroup(columns)
  const flush = () => {
    file ??= beginFile(bytes, describedBy(columns, types, group))
    const written = writeGroup(file, bytes, group)
    group = emptyGroup(columns)
    return written
  }
  return {
    begin: () => NO_BYTES,
    row: (row) => {
      addRow(group, row)
      return group.rows < GROUP_ROWS && group.characters < GROUP_CHARACTERS ? NO_BYTES : flush()
    },
    end: () => {
      const last = group.rows > 0 || !file ? flush() : NO_BYTES
      void file?.parquet.finish()
      return Buffer.concat([last, taken(bytes)])
    },
  }
}

const NO_BYTES = new Uint8Array()

interface ParquetFile {
  parquet: ParquetWriter
  columns: readonly ParquetColumn[]
}

function beginFile(writer: ByteWriter, columns: readonly ParquetColumn[]): ParquetFile {
  const compressors = { ZSTD: (input: Uint8Array) => zstdCompressSync(input) }
  const schema = schemaOf(columns)
  return { parquet: new ParquetWriter({ writer, schema, codec: 'ZSTD', compressors }), columns }
}

function describedBy(columns: readonly string[], types: readonly string[], { data }: Group): ParquetColumn[] {
  return columns.map((name, index) => {
    const values = data[index]?.filter((value) => value !== null) ?? []
    const known = kindOfType(types[index] ?? '')
    return { name, kind: known ?? kindOfValues(values), isGuess: known === null && values.length === 0 }
  })
}

/** Null if the store does not know the type. */
function kindOfType(type: string): Kind | null {
  if (type === '') return null
  if (type === OWN_TIME) return 'TIME'
  if (/INT/i.test(type)) return 'INTEGER'
  return /REAL|FLOA|DOUB/i.test(type) ? 'REAL' : 'TEXT'
}

/** Text if nothing else fits: anything can be read as text. */
function kindOfValues(values: readonly Value[]): Kind {
  if (values.length === 0) return 'TEXT'
  if (values.every((value) => typeof value === 'bigint')) return 'INTEGER'
  if (values.every((value) => realOf(value) !== null)) return 'REAL'
  return values.every((value) => typeof value === 'string' && OUR_FORM.test(value)) ? 'TIME' : 'TEXT'
}

/** Our times have one form: `2026-11-20T08:30:00.000Z`. */
const OUR_FORM = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

/** Without this flag DuckDB takes the times for local times of its own zone, and compares them so with now(). */
const INSTANT = { type: 'TIMESTAMP', isAdjustedToUTC: true, unit: 'MILLIS' } as const

function schemaOf(columns: readonly ParquetColumn[]): Schema {
  const elements = columns.map(({ name, kind }): Schema[number] => {
    const own = { name, repetition_type: 'OPTIONAL' as const }
    if (kind === 'INTEGER') return { ...own, type: 'INT64' }
    if (kind === 'REAL') return { ...own, type: 'DOUBLE' }
    if (kind === 'TIME')
      return { ...own, type: 'INT64', converted_type: 'TIMESTAMP_MILLIS', logical_type: INSTANT }
    return { ...own, type: 'BYTE_ARRAY', converted_type: 'UTF8' }
  })
  return [{ name: 'root', num_children: columns.length }, ...elements]
}

interface Group {
  /** Of each column. */
  data: Value[][]
  rows: number
  characters: number
}

function emptyGroup(columns: readonly string[]): Group {
  return { data: columns.map(() => []), rows: 0, characters: 0 }
}

function addRow(group: Group, row: readonly Value[]): void {
  group.rows++
  for (const [index, values] of group.data.entries()) {
    const value = row[index] ?? null
    values.push(value)
    if (typeof value === 'string') group.characters += value.length
  }
}

function cellOf(value: Value, { name, kind, isGuess }: ParquetColumn): Cell {
  if (value === null) return null
  if (kind === 'TEXT') {
    if (isGuess && typeof value !== 'string') unfit(name, kind)
    return value instanceof Uint8Array ? Buffer.from(value).toString('base64') : String(value)
  }
  if (kind === 'TIME') return timeCell(value) ?? unfit(name, kind)
  if (kind === 'INTEGER') return typeof value === 'bigint' ? value : unfit(name, kind)
  return realOf(value) ?? unfit(name, kind)
}

/** Null for a value that a double cannot hold. */
function realOf(value: Value): number | null {
  if (typeof value === 'number') return value
  return typeof value === 'bigint' && BigInt(Number(value)) === value ? Number(value) : null
}

function timeCell(value: Value): bigint | null {
  const time = typeof value === 'string' ? Date.parse(value) : Number.NaN
  return Number.isNaN(time) ? null : BigInt(time)
}

/** Throws UsageError for a value of another type than its column's. Our tables are STRICT and our views cast, so it comes from somebody else's table or an expression. */
function unfit(name: string, kind: Kind): never {
  const what = kind === 'TIME' ? 'time' : kind
  throw new UsageError(
    `column ${printable(name, 100)}: a value is no ${what}, as the column's type or its first ${GROUP_ROWS.toLocaleString('en')} rows say, so no Parquet can be written; take csv, or have the SQL of a query CAST it`,
  )
}

function writeGroup({ parquet, columns }: ParquetFile, bytes: ByteWriter, { data, rows }: Group): Uint8Array {
  if (rows === 0) return NO_BYTES
  const columnData = columns.map((column, index) => ({
    name: column.name,
    data: (data[index] ?? []).map((value) => cellOf(value, column)),
  }))
  void parquet.write({ columnData, rowGroupSize: rows })
  return taken(bytes)
}

/** Returns what was written since the last call, as a copy: the writer uses its buffer again. */
function taken(bytes: ByteWriter): Uint8Array {
  const copy = bytes.getBytes().slice()
  bytes.index = 0
  return copy
}
