import { createHash } from 'node:crypto'
import { InterruptedError, MirrorError } from '../../../errors.ts'
import type { SqlValue } from '../../columns/column.ts'
import type { Value } from '../../core/reading.ts'
import { quoted } from '../../core/sql.ts'
import type { Connection } from '../../sqlite/driver.ts'
import { POSTGRES, runRule } from '../driver.ts'
import { openCursor } from '../read/query.ts'
import { StaleTablesError } from '../server/errors.ts'
import type { Sql } from '../server/pool.ts'
import type { Server } from '../server/server.ts'
import { storable, storableJson } from '../storable.ts'
import type { MovedTable } from './tables.ts'

// How a value of SQLite becomes one of PostgreSQL, and how it is told that both sides hold the same.

/** A row as texts, which both databases write alike. */
type Texts = (string | null)[]

/** A checksum of a table: the number of its rows, and the sum of a hash of each, in any order. */
export interface Digest {
  rows: number
  sum: bigint
}

function isSame(one: Digest, other: Digest | null): boolean {
  return one.rows === other?.rows && one.sum === other.sum
}

export interface CopyOptions {
  signal: AbortSignal
  /** Called after each batch, with the rows so far. */
  onRows: (rows: number) => void
}

const DIGITS = 15

/** Goes through all rows. `each`: what is done with them. Throws InterruptedError after the signal. */
async function digestOf(
  batches: AsyncIterable<Texts[]> | Iterable<Texts[]>,
  { signal, onRows }: CopyOptions,
  each?: (batch: Texts[]) => Promise<unknown>,
): Promise<Digest> {
  const digest = { rows: 0, sum: 0n }
  for await (const batch of batches) {
    if (signal.aborted)
      throw new InterruptedError(
        'stopped; the same command continues with the tables that are not copied yet',
      )
    for (const texts of batch) {
      const hash = createHash('sha256').update(JSON.stringify(texts)).digest('hex').slice(0, DIGITS)
      digest.sum += BigInt(`0x${hash}`)
    }
    digest.rows += batch.length
    await each?.(batch)
    onRows(digest.rows)
  }
  return digest
}

/** One statement writes at most this many rows, and ends with the row that reaches this many characters. */
const COPIED_AT_ONCE = 2000
const MOST_CHARACTERS = 2_000_000

/** The rows of the file as the server holds them, a batch at a time, so that memory does not grow. */
function* rowsInFile(
  connection: Connection,
  { name, from, order, map, listsFrom }: MovedTable,
  types: readonly string[],
): Iterable<Texts[]> {
  const select = `SELECT ${from.join(', ')} FROM ${quoted(name)}${order}`
  let batch: Texts[] = []
  let characters = 0
  for (const read of connection.prepare(select).raw().safeIntegers().iterate()) {
    const row = map(read as SqlValue[])
    if (!row) continue
    const texts = row.map((value, index) => storedText(value, types[index] ?? 'text', index >= listsFrom))
    batch.push(texts)
    for (const text of texts) characters += text?.length ?? 0
    if (batch.length < COPIED_AT_ONCE && characters < MOST_CHARACTERS) continue
    yield batch
    batch = []
    characters = 0
  }
  if (batch.length > 0) yield batch
}

const TIME = 'timestamp with time zone'

/** Throws MirrorError for a value of a time's column that is not a time. */
function storedText(value: SqlValue, type: string, isList: boolean): string | null {
  if (value === null) return null
  const text = String(value)
  if (type !== TIME) return storable(isList && text.startsWith('[') ? storableJson(text) : text)
  const at = Date.parse(text)
  if (!Number.isNaN(at)) return new Date(at).toISOString()
  throw new MirrorError(
    'the file holds something that is not a time where a time should be, so it was changed by something else; nothing more is copied',
  )
}

/** The types of the columns, in their order; null if the table has not all of them. */
async function typesOf(
  server: Pick<Sql, 'rows' | 'count'>,
  { name, to }: MovedTable,
): Promise<string[] | null> {
  const types = await runRule(server, POSTGRES.columnTypes(name))
  const found = to.flatMap((column) => types.get(column) ?? [])
  return found.length === to.length ? found : null
}

/** What the table holds in the file, and whether it holds the same on the server. */
export async function compareTable(
  server: Server,
  connection: Connection,
  table: MovedTable,
  options: CopyOptions,
): Promise<{ inFile: Digest; same: boolean }> {
  const types = await typesOf(server, table)
  const inFile = await digestOf(rowsInFile(connection, table, types ?? []), options)
  return { inFile, same: types !== null && isSame(inFile, await digestOnServer(server, table, options)) }
}

/** What the table holds on the server; null if another worker has changed it. */
function digestOnServer(
  server: Server,
  { name, to }: MovedTable,
  options: CopyOptions,
): Promise<Digest | null> {
  return server
    .reading(async (sql) => {
      const { batches } = await openCursor(sql, `SELECT ${to.map(quoted).join(', ')} FROM ${quoted(name)}`)
      return digestOf(textsOf(batches), { ...options, onRows: () => {} })
    })
    .catch((error: unknown) => {
      if (error instanceof StaleTablesError) return null
      throw error
    })
}

async function* textsOf(batches: AsyncIterable<Value[][]>): AsyncIterable<Texts[]> {
  for await (const rows of batches)
    yield rows.map((row) => row.map((value) => (value === null ? null : String(value))))
}

/** Fills an empty table of the server with the rows of the file. */
export async function fillTable(
  sql: Pick<Server, 'rows' | 'count'>,
  connection: Connection,
  table: MovedTable,
  options: CopyOptions,
): Promise<Digest> {
  const types = await typesOf(sql, table)
  if (!types) throw new Error(`${table.name} lacks columns that the file has`)
  const names = table.to.map(quoted).join(', ')
  const arrays = types.map((type, index) => `$${index + 1}::${type}[]`)
  const insert = `INSERT INTO ${quoted(table.name)} (${names}) SELECT * FROM unnest(${arrays.join(', ')})`
  return digestOf(rowsInFile(connection, table, types), options, (batch) =>
    sql.rows(
      insert,
      types.map((_, index) => batch.map((texts) => texts[index])),
    ),
  )
}

/** Empties a table, fills it, and compares. Throws MirrorError. */
export async function copyTable(
  server: Server,
  connection: Connection,
  table: MovedTable,
  options: CopyOptions,
): Promise<Digest> {
  await server.transaction((sql) => sql.exec(`TRUNCATE ${quoted(table.name)}`))
  // A statement outside a transaction is sent again if its answer was lost: its rows would be there twice.
  const inTransactions: Pick<Server, 'rows' | 'count'> = {
    rows: (text, values) => server.transaction((sql) => sql.rows(text, values)),
    count: server.count,
  }
  const inFile = await fillTable(inTransactions, connection, table, options)
  const written = await digestOnServer(server, table, options)
  if (isSame(inFile, written)) return inFile
  throw new MirrorError(
    `${table.name} differs from the file after it was copied (${written?.rows ?? 'no'} rows there, ${inFile.rows} here): something else writes to that schema. Stop it, and run the same command again`,
  )
}
