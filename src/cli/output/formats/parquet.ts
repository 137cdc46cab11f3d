import { zstdCompressSync } from 'node:zlib'
import { ByteWriter, ParquetWriter } from 'hyparquet-writer'
import { JobError } from '../../../errors.ts'
import type { Value } from '../../../store/sqlite/read/rows.ts'
import { OWN_TIME, type TypedRows } from '../../../store/sqlite/read/selection.ts'
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
}

/**
 * A Parquet file, compressed by zstd, a row group at a time. Integers are INT64, fractions DOUBLE, our own times
 * TIMESTAMP; times of the API stay text, as they were sent. Throws JobError for a value that its column's type cannot hold.
 */
export function parquetFormat({
  columns,
  types,
}: Pick<TypedRows, 'columns' | 'types'>): Format<readonly Value[], Uint8Array> {
  const described = columns.map((name, index) => ({ name, kind: kindOf(types[index] ?? '') }))
  const bytes = new ByteWriter()
  const compressors = { ZSTD: (input: Uint8Array) => zstdCompressSync(input) }
  const schema = schemaOf(described)
  const parquet = new ParquetWriter({ writer: bytes, schema, codec: 'ZSTD', compressors })
  let group = emptyGroup(described)
  const flush = () => {
    const written = writeGroup(parquet, bytes, described, group)
    group = emptyGroup(described)
    return written
  }
  return {
    begin: () => NOTHING,
    row: (row) => {
      addRow(group, described, row)
      return group.rows < GROUP_ROWS && group.characters < GROUP_CHARACTERS ? NOTHING : flush()
    },
    end: () => {
      const last = group.rows > 0 ? flush() : NOTHING
      void parquet.finish()
      return Buffer.concat([last, taken(bytes)])
    },
  }
}

const NOTHING = new Uint8Array()

/** What SQLite does not know the type of can be read as text. */
function kindOf(type: string): Kind {
  if (type === OWN_TIME) return 'TIME'
  if (/INT/i.test(type)) return 'INTEGER'
  return /REAL|FLOA|DOUB/i.test(type) ? 'REAL' : 'TEXT'
}

/** Without it DuckDB takes the times for local ones, and compares them with now() as if they were of its own time zone. */
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
  data: Cell[][]
  rows: number
  characters: number
}

function emptyGroup(columns: readonly ParquetColumn[]): Group {
  return { data: columns.map(() => []), rows: 0, characters: 0 }
}

function addRow(group: Group, columns: readonly ParquetColumn[], row: readonly Value[]): void {
  group.rows++
  for (const [index, column] of columns.entries()) {
    const cell = cellOf(row[index] ?? null, column)
    group.data[index]?.push(cell)
    if (typeof cell === 'string') group.characters += cell.length
  }
}

function cellOf(value: Value, { name, kind }: ParquetColumn): Cell {
  if (value === null) return null
  if (kind === 'TEXT')
    return value instanceof Uint8Array ? Buffer.from(value).toString('base64') : String(value)
  if (kind === 'TIME') return timeOf(value) ?? unfit(name, kind)
  if (kind === 'INTEGER') return typeof value === 'bigint' ? value : unfit(name, kind)
  if (typeof value === 'number') return value
  return typeof value === 'bigint' && BigInt(Number(value)) === value ? Number(value) : unfit(name, kind)
}

function timeOf(value: Value): bigint | null {
  const time = typeof value === 'string' ? Date.parse(value) : Number.NaN
  return Number.isNaN(time) ? null : BigInt(time)
}

/** The tables are STRICT, and our views cast. */
function unfit(name: string, kind: Kind): never {
  throw new JobError(
    'INTERNAL',
    `column ${name}: a value is no ${kind === 'TIME' ? 'time' : kind}, so no Parquet can be written; export it as csv or ndjson`,
  )
}

function writeGroup(
  parquet: ParquetWriter,
  bytes: ByteWriter,
  columns: readonly ParquetColumn[],
  { data, rows }: Group,
): Uint8Array {
  const columnData = columns.map(({ name }, index) => ({ name, data: data[index] ?? [] }))
  void parquet.write({ columnData, rowGroupSize: rows })
  return taken(bytes)
}

/** What was written since, as a copy: the writer uses its buffer again. */
function taken(bytes: ByteWriter): Uint8Array {
  const copy = bytes.getBytes().slice()
  bytes.index = 0
  return copy
}
