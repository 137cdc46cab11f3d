import { createHash } from 'node:crypto'
import { InterruptedError, MirrorError } from '../../../errors.ts'
import type { SqlValue } from '../../columns/column.ts'
import { StaleTablesError } from '../server/errors.ts'
import type { Server } from '../server/server.ts'
import { quoted, storable, storableJson } from '../sql.ts'

/** A table that is copied row by row. */
export interface MovedTable {
  /** On the server. */
  name: string
  columns: readonly MovedColumn[]
  /** The rows of the file, in the order of the columns. Read one after another, so that memory does not grow. */
  rows(): Iterable<SqlValue[]>
}

// How a value of SQLite becomes one of PostgreSQL, and how both sides tell that they hold the same.

/** `list`: a text that may be JSON, from which views read elements. */
export type MovedType = 'bigint' | 'double precision' | 'text' | 'list' | 'timestamptz'

export interface MovedColumn {
  name: string
  type: MovedType
}

/** What a table holds: the number of its rows, and the sum of a number of each row, in any order. */
export interface Digest {
  rows: number
  sum: bigint
}

export function isSame(one: Digest | null, other: Digest | null): boolean {
  return one !== null && other !== null && one.rows === other.rows && one.sum === other.sum
}

/** The type that a parameter has in PostgreSQL. */
function sqlType(type: MovedType): string {
  return type === 'list' ? 'text' : type
}

/** The value as PostgreSQL reads it. Throws MirrorError for a time that is none. */
function copiedText(value: SqlValue, type: MovedType): string | null {
  if (value === null) return null
  if (type === 'timestamptz') return checkedTime(value)
  const text = String(value)
  if (type === 'list' && text.startsWith('[')) return storable(storableJson(text))
  return type === 'text' || type === 'list' ? storable(text) : text
}

function checkedTime(value: SqlValue): string {
  const at = Date.parse(String(value))
  if (!Number.isNaN(at)) return new Date(at).toISOString()
  throw new MirrorError(
    'the file holds a time that is none, so it was changed by something else; nothing more is copied',
  )
}

const DIGITS = 15

/** Adds a row to a digest. `texts`: as `copiedText` made them. */
function addRow(digest: Digest, texts: readonly (string | null)[], columns: readonly MovedColumn[]): void {
  const line = texts.map((text, index) => pieceOf(text, columns[index]?.type ?? 'text')).join('')
  const hash = createHash('sha256').update(line).digest('hex').slice(0, DIGITS)
  digest.rows++
  digest.sum += BigInt(`0x${hash}`)
}

function pieceOf(text: string | null, type: MovedType): string {
  if (text === null) return '-'
  const shown =
    type === 'double precision' ? bitsOf(text) : type === 'timestamptz' ? String(Date.parse(text)) : text
  return `${Buffer.byteLength(shown)}:${shown}`
}

function bitsOf(text: string): string {
  const bytes = Buffer.alloc(8)
  // -0 is 0 on both sides.
  bytes.writeDoubleBE(Number(text) + 0)
  return bytes.toString('hex')
}

/** The statement that makes the same digest of a table on the server: `rows` and `sum`. */
function digestSql(table: string, columns: readonly MovedColumn[]): string {
  const line = columns.map(({ name, type }) => {
    const shown = shownSql(quoted(name), type)
    return `coalesce(octet_length(${shown})::text || ':' || ${shown}, '-')`
  })
  const number = `('x' || left(encode(sha256(convert_to(${line.join(' || ')}, 'UTF8')), 'hex'), ${DIGITS}))::bit(60)::bigint`
  return `SELECT count(*) AS rows, coalesce(sum(${number}), 0)::text AS sum FROM ${quoted(table)}`
}

function shownSql(name: string, type: MovedType): string {
  if (type === 'bigint') return `${name}::text`
  if (type === 'double precision') return `encode(float8send(${name} + 0.0::double precision), 'hex')`
  if (type === 'timestamptz') return `round(extract(epoch FROM ${name}) * 1000)::bigint::text`
  return name
}

/** One statement writes at most so many rows, or somewhat more than so many characters. */
const COPIED_AT_ONCE = 2000
const MOST_CHARACTERS = 2_000_000

export interface CopyOptions {
  signal: AbortSignal
  /** Called after each batch, with the rows so far. */
  onRows: (rows: number) => void
}

/** Fills a table of the server with the rows of the file, from the beginning, and compares. Throws MirrorError. */
export async function copyTable(server: Server, table: MovedTable, options: CopyOptions): Promise<Digest> {
  await server.transaction((sql) => sql.exec(`TRUNCATE ${quoted(table.name)}`))
  const insert = insertSql(table)
  const write = (batch: readonly (string | null)[][]) =>
    server.transaction((sql) =>
      sql.rows(
        insert,
        table.columns.map((_, index) => batch.map((texts) => texts[index])),
      ),
    )
  const digest = await goThrough(table, options, write)
  const written = await digestOnServer(server, table)
  if (isSame(digest, written)) return digest
  throw new MirrorError(
    `${table.name} differs from the file after it was copied (${written?.rows ?? 'no'} rows there, ${digest.rows} here): something else writes to that schema. Stop it, and run the same command again`,
  )
}

/** What the table holds in the file. */
export function digestOfFile(table: MovedTable, options: CopyOptions): Promise<Digest> {
  return goThrough(table, options, async () => {})
}

/** What the table holds on the server; null if it has not these columns. */
export function digestOnServer(server: Server, { name, columns }: MovedTable): Promise<Digest | null> {
  return server
    .reading(async (sql) => {
      const [row] = await sql.rows<{ rows: number; sum: string }>(digestSql(name, columns))
      return { rows: row?.rows ?? 0, sum: BigInt(row?.sum ?? 0) }
    })
    .catch((error: unknown) => {
      if (error instanceof StaleTablesError) return null
      throw error
    })
}

async function goThrough(
  { columns, rows }: MovedTable,
  { signal, onRows }: CopyOptions,
  write: (batch: (string | null)[][]) => Promise<unknown>,
): Promise<Digest> {
  const digest = { rows: 0, sum: 0n }
  let batch: (string | null)[][] = []
  let characters = 0
  const flush = async () => {
    if (signal.aborted)
      throw new InterruptedError('stopped; the same command goes on with the tables that are not copied yet')
    if (batch.length > 0) await write(batch)
    onRows(digest.rows)
    batch = []
    characters = 0
  }
  for (const row of rows()) {
    const texts = row.map((value, index) => copiedText(value, columns[index]?.type ?? 'text'))
    addRow(digest, texts, columns)
    batch.push(texts)
    for (const text of texts) characters += text?.length ?? 0
    if (batch.length >= COPIED_AT_ONCE || characters >= MOST_CHARACTERS) await flush()
  }
  await flush()
  return digest
}

function insertSql({ name, columns }: Pick<MovedTable, 'name' | 'columns'>): string {
  const names = columns.map((column) => quoted(column.name)).join(', ')
  const arrays = columns.map(({ type }: MovedColumn, index) => `$${index + 1}::${sqlType(type)}[]`)
  return `INSERT INTO ${quoted(name)} (${names}) SELECT * FROM unnest(${arrays.join(', ')})`
}
