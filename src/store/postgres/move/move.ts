import { createHash } from 'node:crypto'
import { MirrorError } from '../../../errors.ts'
import type { Connection } from '../../sqlite/sql.ts'
import { LATEST_VERSION } from '../migrations/migrate.ts'
import type { Server } from '../server/server.ts'
import { movedCollections, planOf } from './collections.ts'
import { type CopyOptions, copyTable, digestOfFile, digestOnServer } from './copy-table.ts'
import { strangersIn } from './strangers.ts'
import { type MovedTable, movedTables } from './tables.ts'
import { begin, finish, inspectTarget, type Mark, noteDone } from './target.ts'
import { type Digest, isSame } from './values.ts'

export interface MoveOptions {
  /** Of the file, in a transaction that nobody else writes beside. */
  connection: Connection
  server: Server
  signal: AbortSignal
  /** Told of each table, once it is equal on both sides. */
  onTable: (table: string, rows: number, how: 'copied' | 'as it was') => void
  /** Told of the rows of a table that are copied so far. */
  onRows: (table: string, rows: number) => void
}

export interface Moved {
  tables: number
  rows: number
  /** Whether an earlier move had brought all. */
  wasDone: boolean
  /** Tables that differ from the file since then. */
  different: string[]
  /** What is not there, or has another name, in words. */
  notices: string[]
}

/**
 * Copies a mirror into an empty schema, and compares each table by its count and a checksum. It can be repeated after any
 * end: tables that are whole are only compared. Throws MirrorError, and InterruptedError after the signal.
 */
export async function move({ connection, server, signal, onTable, onRows }: MoveOptions): Promise<Moved> {
  await assertEncoding(server)
  const collections = movedCollections(connection)
  const settings = settingsOf(connection)
  const mark: Mark = {
    source: sourceOf(settings),
    plan: planOf(collections),
    version: LATEST_VERSION,
    collections: collections.map(({ name }) => name),
  }
  const state = await inspectTarget(server)
  if (state.kind !== 'new') assertSameMirror(server, state.mark, mark)
  const tables = movedTables(connection, collections)
  const notices = [
    ...collections.flatMap(({ name, notices: all }) => all.map((notice) => `${name}: ${notice}`)),
    ...strangersIn(connection).map((what) => `not copied, since it is none of ours: ${what}`),
  ]
  const rowsOf = (table: MovedTable) => ({ signal, onRows: (rows: number) => onRows(table.name, rows) })
  if (state.kind === 'moved') return compareAll({ server, tables, rowsOf, notices, onTable })
  const goesOn =
    state.kind === 'begun' && state.mark.plan === mark.plan && state.mark.version === mark.version
  if (!goesOn) await begin(server, mark, state.kind === 'begun' ? state.mark : null, collections)
  let rows = 0
  for (const table of tables) {
    const known = goesOn ? state.done.get(table.name) : undefined
    const isWhole = known !== undefined && (await isStillWhole(server, table, known, rowsOf(table)))
    const digest = isWhole ? known : await copyTable(server, table, rowsOf(table))
    if (!isWhole) await noteDone(server, table.name, digest)
    rows += digest.rows
    onTable(table.name, digest.rows, isWhole ? 'as it was' : 'copied')
  }
  await finish(server, collections, settings)
  return { tables: tables.length, rows, wasDone: false, different: [], notices }
}

interface Compared extends Pick<MoveOptions, 'server' | 'onTable'> {
  tables: readonly MovedTable[]
  rowsOf: (table: MovedTable) => CopyOptions
  notices: string[]
}

/** Where a mirror was moved before, nothing is written: workers may have gone on with it. */
async function compareAll({ server, tables, rowsOf, notices, onTable }: Compared): Promise<Moved> {
  const different: string[] = []
  let rows = 0
  for (const table of tables) {
    const inFile = await digestOfFile(table, rowsOf(table))
    rows += inFile.rows
    if (isSame(inFile, await digestOnServer(server, table))) onTable(table.name, inFile.rows, 'as it was')
    else different.push(table.name)
  }
  return { tables: tables.length, rows, wasDone: true, different, notices }
}

/** Either side may have changed since the table was copied. */
async function isStillWhole(
  server: Server,
  table: MovedTable,
  known: Digest,
  options: CopyOptions,
): Promise<boolean> {
  if (!isSame(known, await digestOnServer(server, table))) return false
  return isSame(known, await digestOfFile(table, options))
}

/** The settings that go with the rows: the salt, by which tokens are known, and the API's address. */
function settingsOf(connection: Connection): Record<string, string> {
  const rows = connection
    .prepare("SELECT name, value FROM sync_settings WHERE name IN ('salt', 'address')")
    .all()
  return Object.fromEntries(
    (rows as { name: string; value: string }[]).map(({ name, value }) => [name, value]),
  )
}

function sourceOf({ salt = '' }: Readonly<Record<string, string>>): string {
  return createHash('sha256').update(`source of a move ${salt}`).digest('hex')
}

function assertSameMirror({ address }: Server, found: Mark, ours: Mark): void {
  if (found.source === ours.source) return
  throw new MirrorError(
    `another mirror is moved into the schema ${address.schema} of the database ${address.database}, and nothing of it was touched: name another one with schema=NAME, or, if it is not needed, drop it (DROP SCHEMA ${address.schema} CASCADE)`,
  )
}

async function assertEncoding(server: Server): Promise<void> {
  const [row] = await server.rows<{ encoding: string }>(
    "SELECT current_setting('server_encoding') AS encoding",
  )
  if (row?.encoding === 'UTF8') return
  throw new MirrorError(
    `the database ${server.address.database} has the encoding ${row?.encoding}, which cannot hold every text: make one with CREATE DATABASE ... ENCODING 'UTF8'`,
  )
}
