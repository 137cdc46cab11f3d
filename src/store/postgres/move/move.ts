import { createHash } from 'node:crypto'
import { MirrorError } from '../../../errors.ts'
import { tablesSql } from '../../core/declarations.ts'
import { KINDS, tableName } from '../../core/names.ts'
import { collectionNames } from '../../core/tables.ts'
import type { Connection } from '../../sqlite/sql.ts'
import { POSTGRES, runRule } from '../driver.ts'
import { advisoryLocks, lockKey } from '../leases.ts'
import { LATEST_VERSION, MOVING, migrate, readSettings } from '../migrations/migrate.ts'
import type { Server } from '../server/server.ts'
import { quoted, type Sql } from '../sql.ts'
import { ALTERATION, makeChangesView } from '../tables/alter.ts'
import { dropCollection } from '../tables/collection.ts'
import { type MovedCollection, movedCollections, planOf } from './collections.ts'
import {
  type CopyOptions,
  copyTable,
  type Digest,
  digestOfFile,
  digestOnServer,
  isSame,
  type MovedTable,
} from './copy.ts'
import { COUNTERS, movedTables, OWN_TABLES, strangersIn } from './moved-tables.ts'

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
  const tables = await movedTables(server, connection, collections)
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

// The schema while a mirror is moved into it. Its version then says `moving`, so that no worker reads or writes it, and
// `sync_settings` says which tables are whole.

/** What the schema says of the move into it. */
interface Mark {
  /** Tells one mirror from another. */
  source: string
  /** Tells whether the tables are still to be made in the same way. */
  plan: string
  /** The version of the schema that was made. */
  version: number
  /** The collections whose tables were made. */
  collections: string[]
}

const MARK = 'move'
const DONE = 'moved '

/** Whether the schema is new, or a move into it was begun, or it was moved into it. */
type TargetState = { kind: 'new' } | { kind: 'begun' | 'moved'; mark: Mark; done: Map<string, Digest> }

/** Makes the schema if there is none. Throws MirrorError for one that holds something that a move did not bring. */
async function inspectTarget(server: Server): Promise<TargetState> {
  const settings = await readSettings(server)
  const mark = settings.get(MARK)
  if (mark !== undefined) {
    const kind = settings.get('version') === MOVING ? 'begun' : 'moved'
    return { kind, mark: JSON.parse(mark) as Mark, done: doneOf(settings) }
  }
  await migrate(server)
  await assertNothing(server)
  return { kind: 'new' }
}

function doneOf(settings: ReadonlyMap<string, string>): Map<string, Digest> {
  const done = [...settings].filter(([name]) => name.startsWith(DONE))
  return new Map(
    done.map(([name, value]) => {
      const [rows = '', sum = ''] = value.split(' ')
      return [name.slice(DONE.length), { rows: Number(rows), sum: BigInt(sum) }]
    }),
  )
}

/** Organizations and jobs alone are what any command notes of its configuration. */
async function assertNothing(server: Server): Promise<void> {
  const { schema, database } = server.address
  const found = await server.rows(`
    SELECT 1 FROM sync_runs
    UNION ALL SELECT 1 FROM sync_walks
    UNION ALL SELECT 1 FROM sync_jobs WHERE rows > 0
    UNION ALL SELECT 1 FROM organizations WHERE held_since IS NOT NULL
    LIMIT 1
  `)
  if (found.length > 0)
    throw new MirrorError(
      `the schema ${schema} of the database ${database} holds a mirror already, and nothing of it was touched: name another one with schema=NAME, or, if it is not needed, drop it (DROP SCHEMA ${schema} CASCADE)`,
    )
  const locks = await advisoryLocks(server)
  const names = await server.rows<{ organization: string; collection: string }>(`
    SELECT name AS organization, '' AS collection FROM sync_settings WHERE starts_with(name, 'daemon ')
    UNION ALL SELECT organization_id, collection FROM sync_jobs
  `)
  if (names.some((one) => locks.has(String(lockKey(schema, one.organization, one.collection)))))
    throw new MirrorError(`a worker uses the schema ${schema} of the database ${database}: stop it first`)
}

/** Drops what an earlier attempt has made, makes all tables, empty, and notes that the move is under way: from now on no worker uses the schema. */
function begin(
  server: Server,
  mark: Mark,
  earlier: Mark | null,
  collections: readonly MovedCollection[],
): Promise<void> {
  return server.transaction(async (sql) => {
    await sql.rows("UPDATE sync_settings SET value = $1 WHERE name = 'version'", [MOVING])
    await sql.rows(
      `DELETE FROM sync_settings WHERE starts_with(name, '${DONE}') OR starts_with(name, 'daemon ')`,
    )
    await note(sql, MARK, JSON.stringify(mark))
    // What an earlier attempt had made may not be written anywhere but in its mark: the tables that say it may be empty.
    const made = (earlier?.collections ?? []).flatMap((name) => KINDS.map((kind) => tableName(name, kind)))
    for (const table of made) await sql.exec(`DROP TABLE IF EXISTS ${quoted(table)} CASCADE`)
    for (const name of await runRule(sql, collectionNames())) await runRule(sql, dropCollection(name))
    await sql.exec(
      `TRUNCATE ${OWN_TABLES.map(quoted).join(', ')}, sync_known_columns, sync_column_counts, sync_view_columns`,
    )
    for (const { shape, views } of collections) {
      await sql.exec(tablesSql(POSTGRES, shape).join(';\n'))
      await runRule(sql, makeChangesView(shape))
      for (const view of views) await runRule(sql, ALTERATION.replaceView(shape, view.to))
    }
  })
}

/** Notes that a table is whole. */
function noteDone(server: Server, table: string, { rows, sum }: Digest): Promise<void> {
  return server.transaction((sql) => note(sql, DONE + table, `${rows} ${sum}`))
}

/** From now on workers can use the schema. `settings`: those of the file that go with its rows. */
function finish(
  server: Server,
  collections: readonly MovedCollection[],
  settings: Readonly<Record<string, string>>,
): Promise<void> {
  return server.transaction(async (sql) => {
    const histories = collections.map(({ name }) => [`${name}_history`, '_sequence'] as const)
    for (const [table, column] of [...COUNTERS, ...histories])
      await sql.exec(
        `SELECT setval(pg_get_serial_sequence('${quoted(table).replaceAll("'", "''")}', '${column}'), max(${quoted(column)})) FROM ${quoted(table)}`,
      )
    for (const [name, value] of Object.entries(settings)) await note(sql, name, value)
    await note(sql, 'version', String(LATEST_VERSION))
  })
}

async function note(sql: Sql, name: string, value: string): Promise<void> {
  await sql.rows(
    'INSERT INTO sync_settings (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value',
    [name, value],
  )
}
