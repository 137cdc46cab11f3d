import { InterruptedError, MirrorError } from '../../errors.ts'
import { keyColumns, TABLE_KINDS, tableName } from '../columns/catalog.ts'
import { freeName, freeNames, type SqlValue } from '../columns/column.ts'
import { loadColumns } from '../core/known-columns.ts'
import { FORGET_PROCESSES } from '../core/leases.ts'
import { saveSetting, setting } from '../core/settings.ts'
import { all, exec, literal, one, quoted, type Rule } from '../core/sql.ts'
import { type ConfiguredCollection, knownCollections, tablesSql } from '../core/tables.ts'
import { makeViews, parentNames } from '../core/views.ts'
import { type Connection, runRule as inFile, SQLITE } from '../sqlite/driver.ts'
import { typesOf } from '../sqlite/read.ts'
import { type Ask, runRule } from './connections.ts'
import { POSTGRES } from './driver.ts'
import { makeSchema } from './migrate.ts'
import type { Server } from './server.ts'
import { POSTGRES_LIMITS, storableJson } from './storable.ts'

export interface MoveOptions {
  /** Of the file, in a transaction that keeps all others from writing. */
  connection: Connection
  server: Server
  signal: AbortSignal
  /** Called for each table once it is copied. `left`: columns that a server has no room for, so that their values are in `_json` only. */
  onTable: (table: string, rows: number, left: number) => void
}

/** Copies a mirror in a file into an empty schema, in one transaction. Throws MirrorError, and InterruptedError after the signal. */
export async function move({ connection, server, signal, onTable }: MoveOptions) {
  const collections = inFile(connection, knownCollections())
  const names = new Map(collections.flatMap((collection) => [...namesOnServer(connection, collection)]))
  const { address } = server
  return server.transaction(async (ask) => {
    if (!(await runRule(ask, makeSchema(server))))
      throw new MirrorError(
        `${address.shown} holds a mirror already, and nothing of it was touched: name another schema with schema=NAME, or, if it is not needed, drop it (DROP SCHEMA ${address.schema} CASCADE)`,
      )
    const moved = { tables: 0, rows: 0 }
    const copy = async (table: string, to: (column: string) => string | null, map: RowMap) => {
      const rows = await copyTable({ ask, connection, signal }, table, to, map)
      moved.tables++
      moved.rows += rows
      onTable(
        table,
        rows,
        [...typesOf(connection, table).keys()].filter((column) => to(column) === null).length,
      )
    }
    for (const table of ownTables(connection))
      await copy(
        table,
        (column) => column,
        (row, columns) => renamed(row, columns, names),
      )
    await runRule(ask, exec(FORGET_PROCESSES))
    for (const collection of collections) {
      const known = await runRule(ask, loadColumns(POSTGRES, collection.name))
      await runRule(ask, exec(tablesSql(POSTGRES, known.catalog)))
      await runRule(ask, makeViews(POSTGRES, known))
      const columns = names.get(collection.name)?.columns
      const keys = keyColumns(collection.key).map(({ name }) => name)
      for (const kind of TABLE_KINDS)
        await copy(
          tableName(collection.name, kind),
          (column) => columns?.get(column) ?? (column.startsWith('_') ? column : null),
          (row, from) =>
            row.map((value, index) => {
              const column = from[index] ?? ''
              return column.startsWith('_') || keys.includes(column) ? value : storedValue(value)
            }),
        )
    }
    await runRule(ask, countOn(inFile(connection, lastIds())))
    for (const name of ['salt', 'address'])
      await runRule(ask, saveSetting(name, inFile(connection, setting(name)) ?? ''))
    return moved
  })
}

/** As a commit stores it: a view reads the lists. */
function storedValue(value: SqlValue): SqlValue {
  return typeof value === 'string' && value.startsWith('[') ? storableJson(value) : value
}

/** The tables of the program, first those that say what the others are like. */
function ownTables(connection: Connection): string[] {
  const found = inFile(
    connection,
    all<{ name: string }>(
      "SELECT name FROM sqlite_schema WHERE type = 'table' AND name LIKE 'sync\\_%' ESCAPE '\\' AND name NOT IN ('sync_settings', 'sync_workers')",
    ),
  )
  return found.map(({ name }) => name)
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
  const { catalog, views } = inFile(connection, loadColumns(SQLITE, name))
  const keys = keyColumns(key, POSTGRES_LIMITS)
  const columns = new Map([
    ...catalog.keys.map((from, index): [string, string] => [from.name, keys[index]?.name ?? from.name]),
    ...renamedColumns(catalog.values.slice(0, POSTGRES_LIMITS.mostColumns - keys.length), [
      ...POSTGRES_LIMITS.reserved,
      ...keys.map((column) => column.name),
    ]),
  ])
  const found = new Map<string, Renamed>([[name, { name, columns, array: '' }]])
  const parents = ['_organization_id', '_index', ...parentNames(keys, POSTGRES_LIMITS)]
  for (const [arrayColumn, view] of views) {
    const array = columns.get(arrayColumn)
    if (array === undefined) continue
    const taken = [...found.values()].map(({ name: other }) => other)
    const to = freeName(`${name}__${array}`, (candidate) => taken.includes(candidate), POSTGRES_LIMITS)
    found.set(view.name, { name: to, columns: renamedColumns(view.values, parents), array })
  }
  return found
}

function renamedColumns(columns: readonly { name: string }[], reserved: readonly string[]) {
  const names = columns.map(({ name }) => name)
  const free = freeNames(names, reserved, POSTGRES_LIMITS)
  return new Map(names.map((name, index) => [name, free[index] ?? name]))
}

/** A row of a table of ours, with the names on the server if it is about a column; null if the column is not there. */
function renamed(row: SqlValue[], columns: readonly string[], names: ReadonlyMap<string, Renamed>) {
  if (!columns.includes('column')) return row
  const textIn = (column: string) => String(row[columns.indexOf(column)])
  const of = textIn('view') === '' ? 'collection' : 'view'
  const table = names.get(textIn(of))
  const column = table?.columns.get(textIn('column'))
  if (!table || column === undefined) return null
  const news: Record<string, string> = { [of]: table.name, column, array_column: table.array }
  return row.map((value, index) => news[columns[index] ?? ''] ?? value)
}

/** A row as it is on the server; null: it is not copied. */
type RowMap = (row: SqlValue[], columns: readonly string[]) => SqlValue[] | null

/** One statement ends with the row that reaches this many characters. */
const MOST_CHARACTERS = 2_000_000

/** Copies a table. `to`: the name of a column on the server, or null. Returns how many rows. Throws MirrorError where the server does not hold as many. */
async function copyTable(
  { ask, connection, signal }: Pick<MoveOptions, 'connection' | 'signal'> & { ask: Ask },
  name: string,
  to: (column: string) => string | null,
  map: RowMap,
): Promise<number> {
  const types = await runRule(ask, typesOnServer(name))
  const from: string[] = []
  const targets: string[] = []
  for (const column of typesOf(connection, name).keys()) {
    const target = to(column)
    if (target === null || !types.has(target)) continue
    from.push(column)
    targets.push(target)
  }
  // Not by their names: of an object, those that are numbers would come first.
  const lines = POSTGRES.lines(
    Object.fromEntries(targets.map((target, index) => [`c${index}`, types.get(target) ?? 'text'])),
  )
  const insert = `INSERT INTO ${quoted(name)} (${targets.map(quoted).join(', ')}) ${lines.rows(['line.*'])}`
  const select = `SELECT ${from.map(quoted).join(', ')} FROM ${quoted(name)}`
  let copied = 0
  let batch: SqlValue[][] = []
  let characters = 0
  const write = async () => {
    if (signal.aborted) throw new InterruptedError('stopped; nothing was moved')
    await runRule(ask, lines.run(insert, batch))
    copied += batch.length
    batch = []
    characters = 0
  }
  for (const read of connection.prepare(select).raw().safeIntegers().iterate()) {
    const row = map(read as SqlValue[], from)
    if (!row) continue
    batch.push(row)
    for (const value of row) characters += String(value).length + 8
    if (characters >= MOST_CHARACTERS) await write()
  }
  await write()
  const found = await runRule(ask, one<{ rows: number }>(`SELECT count(*) AS rows FROM ${quoted(name)}`))
  if (found?.rows === copied) return copied
  throw new MirrorError(
    `${name} has ${found?.rows} rows on the server and ${copied} in the file, so nothing was moved: something in that database changes what is written`,
  )
}

function* typesOnServer(table: string): Rule<Map<string, string>> {
  const rows = yield* all<{ name: string; type: string }>(
    `
      SELECT attname AS name, format_type(atttypid, NULL) AS type
      FROM pg_attribute
      WHERE attrelid = to_regclass(:table) AND attnum > 0 AND NOT attisdropped
    `,
    { table: quoted(table) },
  )
  return new Map(rows.map(({ name, type }) => [name, type]))
}

/** The last id that each table of the file has given, also where its row is gone. */
function lastIds(): Rule<{ name: string; id: number }[]> {
  return all("SELECT name, seq AS id FROM sqlite_sequence WHERE seq > 0 AND name LIKE 'sync\\_%' ESCAPE '\\'")
}

/** Sets the counters behind the highest number that was copied, and the ids behind the last that was given. */
function* countOn(given: readonly { name: string; id: number }[]): Rule<void> {
  const counters = yield* all<{ statement: string }>(`
    SELECT format(
      'SELECT setval(%L, max(%I)) FROM %s', pg_get_serial_sequence(attrelid::regclass::text, attname), attname, attrelid::regclass
    ) AS statement
    FROM pg_attribute
    JOIN pg_class ON pg_class.oid = attrelid
    WHERE relnamespace = current_schema()::regnamespace AND attidentity <> '' AND NOT attisdropped
  `)
  yield* exec(counters.map(({ statement }) => statement))
  yield* exec(
    given.map(({ name, id }) => `SELECT setval(pg_get_serial_sequence(${literal(name)}, 'id'), ${id})`),
  )
}
