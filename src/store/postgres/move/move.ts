import { createHash } from 'node:crypto'
import { MirrorError } from '../../../errors.ts'
import { printable } from '../../../text.ts'
import { shapeOf, tableName } from '../../columns/catalog.ts'
import { replaceViews } from '../../core/array-views.ts'
import { dropCollection, ensureChangesView } from '../../core/collections.ts'
import { tablesSql } from '../../core/declarations.ts'
import { quoted } from '../../core/sql.ts'
import { knownCollections, loadCatalog } from '../../core/tables.ts'
import type { Connection } from '../../sqlite/driver.ts'
import { POSTGRES, runRule } from '../driver.ts'
import { livingWorkers } from '../leases.ts'
import { LATEST_VERSION, MOVING, migrate, readSettings } from '../migrations/migrate.ts'
import { placeOf, type Sql } from '../server/pool.ts'
import type { Server } from '../server/server.ts'
import { ALTERATION, tried } from '../tables/alter.ts'
import { compareTable, copyTable, fillTable } from './copy.ts'
import {
  DESCRIBING,
  type MovedCollection,
  type MovedTable,
  movedCollections,
  movedTables,
  OWN_TABLES,
} from './tables.ts'

export interface MoveOptions {
  /** Of the file, in a transaction that keeps all others from writing. */
  connection: Connection
  server: Server
  signal: AbortSignal
  /** Called for each table, once it is the same on both sides. */
  onTable: (table: string, rows: number, how: 'copied' | 'as it was') => void
  /** Called with the rows of a table that are copied so far. */
  onRows: (table: string, rows: number) => void
}

export interface Moved {
  tables: number
  rows: number
  /** Whether an earlier move had already copied everything. */
  wasDone: boolean
  /** Tables that differ from the file since then. */
  different: string[]
  /** Columns that have another name on the server, or none, in words. */
  notices: string[]
}

/**
 * Copies a mirror into an empty schema, and compares each table by its count and a checksum. It can be repeated after any
 * end: tables that are whole are only compared, and once everything was moved nothing is written, since workers may have used the schema
 * since. Throws MirrorError, and InterruptedError after the signal.
 */
export async function move({ connection, server, signal, onTable, onRows }: MoveOptions): Promise<Moved> {
  const collections = movedCollections(connection)
  const tooLong = collections.find(({ name }) => Buffer.byteLength(name) > POSTGRES.longestCollection)
  if (tooLong)
    throw new MirrorError(
      `the collection ${tooLong.name} has a name that is too long for tables of PostgreSQL (at most ${POSTGRES.longestCollection} bytes), so this mirror cannot be moved`,
    )
  const settings = settingsOf(connection)
  const source = sourceOf(settings)
  const state = await inspectTarget(server, source)
  const wasDone = state === 'moved'
  const tables = await movedTables(server, connection, collections)
  const optionsOf = ({ name }: MovedTable) => ({ signal, onRows: (rows: number) => onRows(name, rows) })
  const compare = (table: MovedTable) => compareTable(server, connection, table, optionsOf(table))
  const describing = tables.filter(({ name }) => DESCRIBING.includes(name))
  let isNew = state === 'new'
  // The file may have changed since an earlier attempt made the tables.
  if (state === 'begun') for (const table of describing) isNew ||= !(await compare(table)).same
  if (isNew) await begin(server, connection, { source, collections, describing })
  const moved = { rows: 0, different: [] as string[] }
  for (const table of tables) {
    const known = isNew && !describing.includes(table) ? null : await compare(table)
    const isCopied = !known?.same && !wasDone
    const { rows } =
      known && !isCopied ? known.inFile : await copyTable(server, connection, table, optionsOf(table))
    moved.rows += rows
    if (known?.same || isCopied) onTable(table.name, rows, isCopied ? 'copied' : 'as it was')
    else moved.different.push(table.name)
  }
  if (!wasDone) await finish(server, collections, settings)
  const notices = collections.flatMap(({ name, notices: all }) => all.map((notice) => `${name}: ${notice}`))
  return { ...moved, tables: tables.length, wasDone, notices }
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

/** Tells one mirror from another. */
function sourceOf({ salt = '' }: Readonly<Record<string, string>>): string {
  return createHash('sha256').update(`source of a move ${salt}`).digest('hex')
}

// The schema while a mirror is moved into it. Its version then says `moving`, so that no worker reads or writes it.

/** What the schema says of the move into it. `version`: of the schema that was made. */
interface Mark {
  source: string
  version: number
}

const MARK = 'move'

/**
 * Whether nothing was moved into the schema yet, or some of this mirror, or all of it. Makes the schema if there is none.
 * Throws MirrorError for one that holds something that this move did not bring.
 */
async function inspectTarget(server: Server, source: string): Promise<'new' | 'begun' | 'moved'> {
  const { schema } = server.address
  const untouched = `and nothing of it was touched: name another one with schema=NAME, or, if it is not needed, drop it (DROP SCHEMA ${schema} CASCADE)`
  const place = placeOf(server.address)
  const settings = await readSettings(server)
  const text = settings.get(MARK)
  if (text === undefined) {
    await migrate(server)
    if (await isUsed(server)) throw new MirrorError(`${place} holds a mirror already, ${untouched}`)
    if ((await livingWorkers(server)).size > 0) throw new MirrorError(`a worker uses ${place}: stop it first`)
    return 'new'
  }
  const mark = JSON.parse(text) as Mark
  if (mark.source !== source) throw new MirrorError(`another mirror is moved into ${place}, ${untouched}`)
  if (settings.get('version') !== MOVING) return 'moved'
  if (mark.version !== LATEST_VERSION)
    throw new MirrorError(
      `another version of admin-mirror began to move this mirror into ${place}, ${untouched}`,
    )
  return 'begun'
}

/** Organizations and jobs do not count: any command notes those of its configuration. */
async function isUsed(server: Server): Promise<boolean> {
  const found = await server.rows(`
    SELECT 1 FROM sync_runs
    UNION ALL SELECT 1 FROM sync_walks
    UNION ALL SELECT 1 FROM sync_jobs WHERE rows > 0
    UNION ALL SELECT 1 FROM organizations WHERE held_since IS NOT NULL
    LIMIT 1
  `)
  return found.length > 0
}

interface Begun {
  source: string
  collections: readonly MovedCollection[]
  describing: readonly MovedTable[]
}

/** Drops what an earlier attempt has made, and makes all tables, empty. From now on no worker uses the schema. */
function begin(
  server: Server,
  connection: Connection,
  { source, collections, describing }: Begun,
): Promise<void> {
  return server.transaction(async (sql) => {
    await note(sql, 'version', MOVING)
    await sql.rows("DELETE FROM sync_settings WHERE starts_with(name, 'daemon ')")
    const mark: Mark = { source, version: LATEST_VERSION }
    await note(sql, MARK, JSON.stringify(mark))
    for (const { name } of await runRule(sql, knownCollections())) {
      const drop = tried(() => dropCollection(POSTGRES, name))
      const inTheWay = await runRule(sql, drop)
      if (inTheWay !== null)
        throw new MirrorError(
          `the tables of ${name} in ${placeOf(server.address)} have to be made again, and ${printable(inTheWay)} depends on them: ` +
            'drop it, and run the same command again',
        )
    }
    await sql.exec(`TRUNCATE ${OWN_TABLES.map(quoted).join(', ')}`)
    const options = { signal: new AbortController().signal, onRows: () => {} }
    for (const table of describing) await fillTable(sql, connection, table, options)
    for (const { name, key } of collections) {
      const shape = shapeOf(name, await runRule(sql, loadCatalog(POSTGRES, { name, key })))
      await sql.exec(tablesSql(POSTGRES, shape).join(';\n'))
      await runRule(sql, ensureChangesView(ALTERATION, shape))
      await runRule(sql, replaceViews(ALTERATION, shape))
    }
  })
}

/** Sets the identity columns of these tables behind the highest copied number. Other tables in the schema may be somebody else's. */
const COUNTERS = `
  SELECT format('SELECT setval(%L, max(%I)) FROM %s', pg_get_serial_sequence(attrelid::regclass::text, attname), attname, attrelid::regclass) AS set
  FROM pg_attribute
  JOIN pg_class ON pg_class.oid = attrelid
  WHERE relnamespace = current_schema()::regnamespace AND relname = ANY ($1) AND attidentity <> '' AND NOT attisdropped
`

/** From now on workers can use the schema. `settings`: those of the file that go with its rows. */
function finish(
  server: Server,
  collections: readonly MovedCollection[],
  settings: Readonly<Record<string, string>>,
): Promise<void> {
  const counting = [...OWN_TABLES, ...collections.map(({ name }) => tableName(name, 'history'))]
  return server.transaction(async (sql) => {
    for (const { set } of await sql.rows<{ set: string }>(COUNTERS, [counting])) await sql.exec(set)
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
