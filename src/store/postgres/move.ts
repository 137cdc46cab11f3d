import { InterruptedError, MirrorError } from '../../errors.ts'
import { keyColumnNames, shapeOf, splitKey, TABLE_KINDS, tableName } from '../columns/catalog.ts'
import { foldName, freeName, type SqlValue } from '../columns/column.ts'
import { daemons, type IsAlive, livingOwners } from '../core/leases.ts'
import { type Columns, quoted } from '../core/sql.ts'
import {
  type ConfiguredCollection,
  dropCollection,
  isTyped,
  knownCollections,
  loadCatalog,
  loadColumns,
  ownColumns,
  tablesSql,
} from '../core/tables.ts'
import { loadArrayViews, makeViews, parentNames } from '../core/views.ts'
import { type Connection, runRule as inFile, SQLITE } from '../sqlite/driver.ts'
import { POSTGRES, runRule } from './driver.ts'
import { migrate } from './migrate.ts'
import { serverTime } from './server/clock.ts'
import { placeOf, type Sql } from './server/pool.ts'
import type { Server } from './server/server.ts'
import { POSTGRES_LIMITS, storableJson, withinPage } from './storable.ts'

// A mirror in a file becomes one on a server.

export interface MoveOptions {
  /** Of the file, in a transaction that keeps all others from writing. */
  connection: Connection
  server: Server
  signal: AbortSignal
  /** Called for each table once it is copied. */
  onTable: (table: string, rows: number) => void
}

/** Copies the mirror into an empty schema, in one transaction. Throws MirrorError, and InterruptedError after the signal. */
export async function move({ connection, server, signal, onTable }: MoveOptions) {
  const collections = inFile(connection, knownCollections())
  const names = new Map(collections.flatMap((collection) => [...namesOnServer(connection, collection)]))
  await migrate(server)
  return server.transaction(async (sql) => {
    await assertUnused(sql, server)
    for (const { name } of await runRule(sql, knownCollections()))
      await runRule(sql, dropCollection(POSTGRES, name))
    const moved = { tables: 0, rows: 0 }
    const copy = async (table: MovedTable) => {
      const rows = await copyTable(sql, connection, table, signal)
      moved.tables++
      moved.rows += rows
      onTable(table.name, rows)
    }
    for (const table of ownTables(connection)) {
      await sql.exec(`DELETE FROM ${quoted(table)}`)
      const columns = await columnsOf(sql, connection, table)
      await copy({ name: table, ...columns, map: (row) => renamed(row, columns.from, names) })
    }
    for (const collection of collections) {
      const shape = shapeOf(collection.name, await runRule(sql, loadCatalog(POSTGRES, collection)))
      await sql.exec(tablesSql(POSTGRES, shape).join(';\n'))
      await runRule(sql, makeViews(POSTGRES, shape))
      for (const table of tablesOf(collection, names)) await copy(table)
    }
    await finish(sql, connection)
    return moved
  })
}

/** Workers may be on any machine. */
const elsewhere: IsAlive = () => null

/** Organizations, jobs and empty tables do not count: any command makes those of its configuration. Throws MirrorError. */
async function assertUnused(sql: Sql, { address }: Server): Promise<void> {
  // Whoever starts now waits, and finds the whole mirror.
  await sql.exec('LOCK TABLE organizations, sync_jobs, sync_collections IN ACCESS EXCLUSIVE MODE')
  const place = placeOf(address)
  const now = await serverTime(sql)
  const owners = await runRule(sql, livingOwners(elsewhere, now))
  const starts = await runRule(sql, daemons(elsewhere, now))
  if (owners.size > 0 || starts.some(({ running }) => running))
    throw new MirrorError(`a worker uses ${place}: stop it first`)
  const found = await sql.rows(`
    SELECT 1 FROM sync_runs
    UNION ALL SELECT 1 FROM sync_walks
    UNION ALL SELECT 1 FROM sync_jobs WHERE rows > 0
    UNION ALL SELECT 1 FROM organizations WHERE held_since IS NOT NULL
    LIMIT 1
  `)
  if (found.length > 0)
    throw new MirrorError(
      `${place} holds a mirror already, and nothing of it was touched: name another schema with schema=NAME, or, if it is not needed, drop it (DROP SCHEMA ${address.schema} CASCADE)`,
    )
}

// Names are decided anew: those of PostgreSQL have at most 63 bytes, and a table has fewer columns.

interface Renamed {
  name: string
  /** By their names in the file. A column that is not here stays in `_json` only. */
  columns: ReadonlyMap<string, string>
  /** Of the view of an array: its column on the server. */
  array: string
}

/** What the tables and views of a collection are called on the server, by their names in the file. */
function namesOnServer(connection: Connection, { name, key }: ConfiguredCollection): Map<string, Renamed> {
  const keyPaths = splitKey(key)
  const keys = keyColumnNames(keyPaths, POSTGRES_LIMITS)
  const values = inFile(connection, loadColumns(SQLITE, name)).filter(({ role }) => role !== 'key')
  const columns = new Map([
    ...keyColumnNames(keyPaths).map((from, index): [string, string] => [from, keys[index] ?? from]),
    ...freeNames(values.slice(0, POSTGRES_LIMITS.mostColumns - keys.length), [
      ...POSTGRES_LIMITS.reserved,
      ...keys,
    ]),
  ])
  const all = new Map<string, Renamed>([[name, { name, columns, array: '' }]])
  const parents = ['_organization_id', '_index', ...parentNames(keys, POSTGRES_LIMITS)]
  for (const view of inFile(connection, loadArrayViews(SQLITE, name)).values()) {
    const array = columns.get(view.arrayColumn)
    if (array === undefined) continue
    const taken = [...all.values()].map((one) => one.name)
    const to = freeName(`${name}__${array}`, (candidate) => taken.includes(candidate), POSTGRES_LIMITS)
    all.set(view.name, { name: to, columns: freeNames(view.catalog.columns, parents), array })
  }
  return all
}

function freeNames(columns: readonly { name: string }[], reserved: readonly string[]): Map<string, string> {
  const taken = new Set(reserved.map(foldName))
  const names = new Map<string, string>()
  for (const { name } of columns) {
    const free = freeName(name, (candidate) => taken.has(foldName(candidate)), POSTGRES_LIMITS)
    taken.add(foldName(free))
    names.set(name, free)
  }
  return names
}

/** A row of a table of ours, with the names on the server if it is about a column; null if the column is not there. */
function renamed(row: SqlValue[], columns: readonly string[], names: ReadonlyMap<string, Renamed>) {
  const textIn = (column: string) => String(row[columns.indexOf(column)])
  const of = columns.find((column) => column === 'collection' || column === 'view') ?? ''
  if (!columns.includes('column')) return row
  const table = names.get(textIn(of))
  const column = table?.columns.get(textIn('column'))
  if (!table || column === undefined) return null
  const news: Record<string, string> = { [of]: table.name, column, array_column: table.array }
  return row.map((value, index) => news[columns[index] ?? ''] ?? value)
}

// Rows.

interface MovedTable {
  name: string
  /** Names in the file, and on the server. */
  from: string[]
  to: string[]
  /** Null: not copied. */
  map: (row: SqlValue[]) => SqlValue[] | null
}

/** The tables of the program, first those that say what the others are like. */
function ownTables(connection: Connection): string[] {
  const first = ['sync_collections', 'sync_known_columns', 'sync_view_columns']
  const names = connection
    .prepare(
      "SELECT name FROM sqlite_schema WHERE type = 'table' AND (name LIKE 'sync\\_%' ESCAPE '\\' OR name = 'organizations') AND name NOT IN ('sync_settings', 'sync_workers')",
    )
    .pluck()
    .all() as string[]
  return [...first, ...names.filter((name) => !first.includes(name))]
}

/** What is known to one process, or one machine, alone. */
const OF_A_PROCESS = ['owner', 'verifying', 'retry_since', 'retry_until', 'retry_error']

/** The columns of both sides; the number of a row in the file is its place on the server. */
async function columnsOf(sql: Sql, connection: Connection, table: string) {
  const there = await runRule(sql, POSTGRES.columnTypes(table))
  const from = [...inFile(connection, SQLITE.columnTypes(table)).keys()].filter(
    (column) => there.has(column) && !OF_A_PROCESS.includes(column),
  )
  const isOrdered = there.has('sequence') && !from.includes('sequence')
  return isOrdered ? { from: [...from, '_rowid_'], to: [...from, 'sequence'] } : { from, to: from }
}

function tablesOf({ name, key }: ConfiguredCollection, names: ReadonlyMap<string, Renamed>): MovedTable[] {
  const columns = names.get(name)?.columns ?? new Map<string, string>()
  const keyPaths = splitKey(key)
  return TABLE_KINDS.map((kind): MovedTable => {
    if (!isTyped(kind)) {
      const own = ownColumns(kind)
      return { name: tableName(name, kind), from: own, to: own, map: (row) => row }
    }
    const own = ['_organization_id', ...ownColumns(kind)]
    const from = [...own, ...columns.keys()]
    const to = from.map((column) => columns.get(column) ?? column)
    const values = to.slice(own.length + keyPaths.length).map((column) => ({ name: column }))
    const map = (row: SqlValue[]) => [
      ...row.slice(0, -values.length || undefined),
      ...valuesOnServer(row.slice(row.length - values.length), values, keyPaths),
    ]
    return { name: tableName(name, kind), from, to, map }
  })
}

/** As a commit stores them: a row has to fit into a database page, and a view reads the lists. */
function valuesOnServer(
  row: readonly SqlValue[],
  columns: readonly { name: string }[],
  keyPaths: readonly string[][],
): SqlValue[] {
  const given = columns.map(({ name }, index): [string, SqlValue] => [name, row[index] ?? null])
  const values = new Map(given.filter(([, value]) => value !== null))
  const fitting = withinPage({ columns, keyPaths }, { values, arrays: [] }).values
  return columns.map(({ name }) => {
    const value = fitting.get(name) ?? null
    return typeof value === 'string' && value.startsWith('[') ? storableJson(value) : value
  })
}

/** One statement writes at most this many rows, and ends with the row that reaches this many characters. */
const COPIED_AT_ONCE = 2000
const MOST_CHARACTERS = 2_000_000

/** Returns how many rows were copied. Throws MirrorError where the server does not hold as many. */
async function copyTable(sql: Sql, connection: Connection, table: MovedTable, signal: AbortSignal) {
  const { name, from, to, map } = table
  const types = await runRule(sql, POSTGRES.columnTypes(name))
  // Not by their names: of an object, those that are numbers would come first.
  const columns: Columns = Object.fromEntries(
    to.map((column, index) => [`c${index}`, types.get(column) ?? 'text']),
  )
  const line = POSTGRES.lines(columns)
  const insert = `INSERT INTO ${quoted(name)} (${to.map(quoted).join(', ')}) ${line.rows(['line.*'])}`
  let copied = 0
  let batch: SqlValue[][] = []
  let characters = 0
  const write = async () => {
    if (signal.aborted) throw new InterruptedError('stopped; nothing was moved')
    await runRule(sql, line.run(insert, batch))
    copied += batch.length
    batch = []
    characters = 0
  }
  const order = from.includes('_rowid_') ? ' ORDER BY _rowid_' : ''
  const select = `SELECT ${from.map(quotedColumn).join(', ')} FROM ${quoted(name)}${order}`
  for (const read of connection.prepare(select).raw().safeIntegers().iterate()) {
    const row = map(read as SqlValue[])
    if (!row) continue
    batch.push(row)
    for (const value of row) characters += typeof value === 'string' ? value.length : 8
    if (batch.length >= COPIED_AT_ONCE || characters >= MOST_CHARACTERS) await write()
  }
  await write()
  const [found] = await sql.rows<{ rows: number }>(`SELECT count(*) AS rows FROM ${quoted(name)}`)
  if (found?.rows === copied) return copied
  throw new MirrorError(
    `${name} has ${found?.rows} rows on the server and ${copied} in the file, so nothing was moved: something in that database changes what is written`,
  )
}

/** In quotes SQLite would take the number of a row for a text, where a table has none. */
function quotedColumn(name: string): string {
  return name === '_rowid_' ? name : quoted(name)
}

/** Sets the counters behind the highest copied number, and brings the salt, by which tokens are known, and the API's address. */
async function finish(sql: Sql, connection: Connection): Promise<void> {
  for (const { statement } of await sql.rows<{ statement: string }>(COUNTERS)) await sql.exec(statement)
  const settings = connection.prepare(
    "SELECT name, value FROM sync_settings WHERE name IN ('salt', 'address')",
  )
  for (const { name, value } of settings.all() as { name: string; value: string }[])
    await sql.rows(
      'INSERT INTO sync_settings (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value',
      [name, value],
    )
}

const COUNTERS = `
  SELECT format(
    'SELECT setval(%L, max(%I)) FROM %s', pg_get_serial_sequence(attrelid::regclass::text, attname), attname, attrelid::regclass
  ) AS statement
  FROM pg_attribute
  JOIN pg_class ON pg_class.oid = attrelid
  WHERE relnamespace = current_schema()::regnamespace AND attidentity <> '' AND NOT attisdropped AND relname LIKE 'sync\\_%'
`
