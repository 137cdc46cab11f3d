import type { Config } from '../config/config.ts'
import { UsageError } from '../errors.ts'
import { tableName } from '../store/columns/catalog.ts'
import {
  collectionNames,
  listedOrganizations,
  mayHold,
  OF_EVERY_MIRROR,
  type Rows,
} from '../store/core/reading.ts'
import { literal, quoted, type Rule } from '../store/core/sql.ts'
import { printable } from '../text.ts'
import { type MirrorPlace, type Named, organizationsNamed } from './mirror.ts'
import { textPieces, writePieces } from './output/formats.ts'
import type { Runtime } from './runtime.ts'

// `query` and `export`, on a mirror of either kind.

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

/** A mirror of either kind, as far as it is read. */
export interface ReadableMirror {
  ask<T>(rule: Rule<T>): MaybePromise<T>
  /** Throws UsageError for a statement that does not only read, and for wrong SQL. */
  query(sql: string, parameters: QueryWork['parameters']): MaybePromise<Rows>
  /** Of the columns of a table or view, where a query does not say them all. */
  typesOf?(name: string): ReadonlyMap<string, string>
}

/** Does what `query` or `export` asks for, and writes what it finds to standard output. Throws UsageError and MirrorError. */
export async function runReading(runtime: Runtime, task: ReadingTask): Promise<number> {
  if (task.work.format === 'parquet' && runtime.stdout.isTTY === true)
    throw new UsageError('Parquet is not for a terminal; write it to a file: > result.parquet')
  // Node reports a signal in the next turn of the event loop: one that came before is not lost.
  await runtime.yieldToEventLoop()
  // SQLite cannot be interrupted, but the process can be ended.
  runtime.dieOnSignal()
  if (task.config?.postgres) await (await import('./postgres.ts')).readOnServer(runtime, task)
  else await (await import('./file.ts')).readFile(runtime, task)
  return 0
}

/** Writes what the task asks of this mirror. */
export async function writeResult(
  { stdout }: Pick<Runtime, 'stdout'>,
  mirror: ReadableMirror,
  { work, config }: ReadingTask,
): Promise<void> {
  const rows: ExportedRows =
    work.kind === 'query'
      ? await mirror.query(work.sql, work.parameters)
      : await exportedRows(mirror, work, config)
  const format = rows.format ?? work.format
  // With its library: a small query starts faster without.
  const pieces =
    format === 'parquet'
      ? (await import('./output/parquet.ts')).parquet(rows)
      : textPieces(format, rows, stdout.isTTY === true)
  await writePieces(stdout, pieces)
}

/** `items`: the one column is the items of a collection, as JSON. */
type ExportedRows = Rows & { format?: 'items' }

/** The rows of a table or view. Throws UsageError. */
async function exportedRows(
  mirror: ReadableMirror,
  { name, format, organizations }: ExportWork,
  config: Config | null,
): Promise<ExportedRows> {
  let where = ''
  if (organizations.length > 0) {
    const ids = idsOf(organizations, config, await mirror.ask(listedOrganizations()))
    where = ` WHERE ${ownerColumn(name)} IN (${ids.map(literal).join(', ')})`
  }
  if (format === 'ndjson' && (await mirror.ask(collectionNames())).includes(name)) {
    const raw = quoted(tableName(name, 'raw'))
    return { ...(await mirror.query(`SELECT _json FROM ${raw}${where}`, [])), format: 'items' }
  }
  const all = await mirror.query(`SELECT * FROM ${quoted(name)} LIMIT 0`, [])
  // A server has one cursor.
  await Array.fromAsync(all.batches)
  // The others are for the program, such as the number by which it finds the JSON of a row.
  const columns = OF_EVERY_MIRROR[name] ?? all.columns.filter((column) => column !== '_row')
  const rows = await mirror.query(`SELECT ${columns.map(quoted).join(', ')} FROM ${quoted(name)}${where}`, [])
  const known = mirror.typesOf?.(name)
  return known ? { ...rows, types: columns.map((column) => known.get(column) ?? '') } : rows
}

function ownerColumn(name: string): string {
  if (name === 'organizations') return 'id'
  return name in OF_EVERY_MIRROR ? 'organization_id' : '_organization_id'
}

/** Before there is a mirror of this configuration. Throws UsageError for names that it cannot have. */
export function assertExport({ name, organizations }: ExportWork, config: Config): void {
  const collections = config.collections.map((collection) => collection.name)
  if (!mayHold(collections, name))
    throw new UsageError(
      `there is no table or view ${printable(name)}; there are: ${[...collections, ...Object.keys(OF_EVERY_MIRROR)].join(', ')}`,
    )
  idsOf(organizations, config, [])
}

/** One that left the configuration may have the name of another, which goes before it. */
function idsOf(typed: readonly string[], config: Config | null, mirrored: readonly Named[]): string[] {
  const configured: readonly Named[] = config?.organizations ?? []
  return typed.flatMap((name) => {
    const found = organizationsNamed(name, [...configured, ...mirrored])
    const own = found.filter((one) => configured.includes(one))
    return (own.length > 0 ? own : found).map(({ id }) => id)
  })
}
