import type { Listed, TypedRows, Value } from '../../store/core/reading.ts'
import type { ReadStatement } from '../../store/core/selection.ts'
import type { Dialect, Rule } from '../../store/core/sql.ts'
import { assertReadingSql, createReader, type Parameters } from '../../store/sqlite/read/reader.ts'
import { isNotMadeYet, openMirror } from '../file/mirror.ts'
import { type Batches, type Format, formatted, type Tell } from '../output/formats/format.ts'
import { tableFormat } from '../output/formats/table.ts'

/** At once from a file, later from a server. */
type MaybePromise<T> = T | Promise<T>

/** What `query`, `export` or `describe` asks of a mirror, and where its output goes. */
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

export type ReadingWork = QueryWork | ExportWork | DescribeWork

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

export interface DescribeWork {
  kind: 'describe'
  name: string | null
  json: boolean
  /** Epoch milliseconds. */
  now: number
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
  if (work.kind === 'export') {
    const { exported } = await import('./exported.ts')
    return exported(mirror, work, { configured, isTerminal }, tell)
  }
  const { describe } = await import('./describe.ts')
  return describe(mirror, work, { configured, width })
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

/** Does the task on a mirror in a file, and yields what it writes. Throws UsageError and MirrorError. */
export async function* read(task: ReadingTask, tell: Tell): AsyncIterable<Uint8Array> {
  const { database, isCopy, work } = task
  if (isNotMadeYet(database)) {
    // Usage is checked before the mirror is looked at.
    if (work.kind === 'query') assertReadingSql(work.sql, valuesOf(work.parameters))
    else if (!isCopy) {
      const { assertNameOf } = await import('./named.ts')
      assertNameOf(work, task.configured)
    }
  }
  const connection = openMirror(database, isCopy)
  // In memory: the disk may have no room, and this user no right to it.
  if (work.kind === 'describe') connection.pragma('temp_store = MEMORY')
  const reader = createReader(connection, database)
  // All rows are one batch, which is read while it is written.
  const mirror: ReadableMirror = {
    ...reader,
    query({ sql, parameters }) {
      const { rows, ...head } = reader.query(sql, valuesOf(parameters))
      return { ...head, batches: [rows] }
    },
    select: (statement) => [reader.select(statement)],
  }
  try {
    yield* await written(mirror, task, tell)
  } finally {
    reader.close()
  }
}

const [LEAST, MOST] = [-(2n ** 63n), 2n ** 63n - 1n]

function valuesOf(parameters: QueryWork['parameters']): Parameters {
  return new Map(parameters.map(([name, value]) => [name, parameterValue(value)]))
}

/**
 * A text that SQLite itself would write for a number is that number, and compared with a TEXT column it is the same text again;
 * anything else (007, 1.10) is a text.
 */
function parameterValue(text: string): string | number | bigint {
  if (/^(?:0|-?[1-9]\d*)$/.test(text)) {
    const whole = BigInt(text)
    return whole >= LEAST && whole <= MOST ? whole : text
  }
  const isPlain = /^-?(?:0|[1-9]\d{0,9})\.\d{0,4}[1-9]$/.test(text)
  return isPlain ? Number(text) : text
}
