import { printable } from '../../../text.ts'
import type { SqlValue } from '../../columns/column.ts'
import { ownColumns } from '../../core/declarations.ts'
import { namesOfTables, type TableKind, tableName } from '../../core/names.ts'
import { SQLITE } from '../../sqlite/driver.ts'
import { type Connection, quoted } from '../../sqlite/sql.ts'
import type { Sql } from '../sql.ts'
import type { MovedCollection } from './collections.ts'
import type { MovedColumn, MovedTable } from './copy.ts'

/** Our own tables that are the same on both sides. */
export const OWN_TABLES = [
  'organizations',
  'sync_collections',
  'sync_seq',
  'sync_jobs',
  'sync_runs',
  'sync_walks',
  'sync_pages',
  'sync_rejects',
  'sync_refreshed',
  'sync_missing',
  'sync_gates',
  'sync_shares',
]

/** What is known to one process, or one machine, alone. */
const OF_A_PROCESS = ['owner', 'verifying', 'retry_since', 'retry_until', 'retry_error']

/** The order of rows: in the file that of their row ids. */
const SEQUENCE = 'sequence'

/** The columns of our own tables, by table, that the file has, too. */
export async function columnsInBoth(
  server: Pick<Sql, 'rows'>,
  connection: Connection,
): Promise<Map<string, MovedColumn[]>> {
  const found = await server.rows<MovedColumn & { table: string }>(
    `
      SELECT relname AS table, attname AS name, replace(format_type(atttypid, NULL), 'timestamp with time zone', 'timestamptz') AS type
      FROM pg_attribute
      JOIN pg_class ON pg_class.oid = attrelid
      WHERE relnamespace = current_schema()::regnamespace AND relname = ANY ($1) AND attnum > 0 AND NOT attisdropped
      ORDER BY attnum
    `,
    [OWN_TABLES],
  )
  const inFile = connection.prepare('SELECT name FROM pragma_table_info(?)').pluck()
  return new Map(
    OWN_TABLES.map((table) => {
      const names = new Set([SEQUENCE, ...(inFile.all(table) as string[])])
      const columns = found.filter(
        (one) => one.table === table && names.has(one.name) && !OF_A_PROCESS.includes(one.name),
      )
      return [table, columns.map(({ name, type }) => ({ name, type }))]
    }),
  )
}

/** The columns that count by themselves, which go on behind the highest copied number. */
export const COUNTERS: readonly [table: string, column: string][] = [
  ['sync_runs', 'id'],
  ['sync_walks', 'id'],
  ['sync_pages', 'sequence'],
  ['sync_known_columns', 'sequence'],
  ['sync_view_columns', 'sequence'],
]

/** All tables, those of the collections last. */
export async function movedTables(
  server: Pick<Sql, 'rows'>,
  connection: Connection,
  collections: readonly MovedCollection[],
): Promise<MovedTable[]> {
  const own = await columnsInBoth(server, connection)
  return [
    ...[...own].map(([name, columns]) => {
      const isOrdered = columns.some((column) => column.name === SEQUENCE)
      const values = columns.map((column) => (column.name === SEQUENCE ? '_rowid_' : quoted(column.name)))
      const order = isOrdered ? 'ORDER BY _rowid_' : ''
      return { name, columns, rows: reading(connection, selectSql(values, name, order)) }
    }),
    columnsTable(connection, collections),
    countsTable(connection, collections),
    viewColumnsTable(connection, collections),
    ...collections.flatMap((collection) => tablesOfCollection(connection, collection)),
  ]
}

function selectSql(values: readonly string[], table: string, order = ''): string {
  return `SELECT ${values.join(', ')} FROM ${quoted(table)} ${order}`
}

function reading(connection: Connection, sql: string): () => Iterable<SqlValue[]> {
  return () => connection.prepare(sql).raw().safeIntegers().iterate() as Iterable<SqlValue[]>
}

const text = (name: string): MovedColumn => ({ name, type: 'text' })
const whole = (name: string): MovedColumn => ({ name, type: 'bigint' })
const time = (name: string): MovedColumn => ({ name, type: 'timestamptz' })

function columnsTable(connection: Connection, collections: readonly MovedCollection[]): MovedTable {
  const find = connection.prepare(
    'SELECT first_seen_at, last_changed_at FROM sync_known_columns WHERE collection = ? AND "column" = ?',
  )
  return {
    name: 'sync_known_columns',
    columns: [
      ...['collection', 'column', 'path', 'type', 'role'].map(text),
      ...['wide', 'sequence'].map(whole),
      ...['first_seen_at', 'last_changed_at'].map(time),
    ],
    *rows() {
      let sequence = 0n
      for (const { name: collection, columns } of collections)
        for (const { from, column } of columns) {
          const { name, path, type, role, wide } = column
          const times = find.raw().get(collection, from) as [string, string]
          yield [collection, name, path, type, role, wide ? 1n : 0n, ++sequence, ...times]
        }
    },
  }
}

function countsTable(connection: Connection, collections: readonly MovedCollection[]): MovedTable {
  const find = connection.prepare(`
    SELECT organization_id, misfit, filled, misfits, objects, emptied, last_filled_at
    FROM sync_column_counts
    WHERE collection = ? AND "column" = ?
  `)
  function countsOf(fromTable: string, from: string, table: string, column: string): SqlValue[][] {
    const found = find.raw().safeIntegers().all(fromTable, from) as SqlValue[][]
    return found.map((counts) => [table, column, ...counts])
  }
  return {
    name: 'sync_column_counts',
    columns: [
      ...['collection', 'column', 'organization_id', 'misfit'].map(text),
      ...['filled', 'misfits', 'objects', 'emptied'].map(whole),
      time('last_filled_at'),
    ],
    *rows() {
      for (const { name, columns, views } of collections) {
        for (const { from, column } of columns) yield* countsOf(name, from, name, column.name)
        for (const { from, to } of views)
          for (const [index, { name: column }] of to.elements.entries())
            yield* countsOf(from.name, from.elements[index]?.name ?? '', to.name, column)
      }
    },
  }
}

function viewColumnsTable(connection: Connection, collections: readonly MovedCollection[]): MovedTable {
  const find = connection.prepare(
    'SELECT first_seen_at, last_changed_at FROM sync_view_columns WHERE view = ? AND "column" = ?',
  )
  return {
    name: 'sync_view_columns',
    columns: [
      ...['view', 'array_column', 'column', 'path', 'type', 'role'].map(text),
      ...['wide', 'sequence'].map(whole),
      ...['first_seen_at', 'last_changed_at'].map(time),
    ],
    *rows() {
      let sequence = 0n
      for (const { from, to } of collections.flatMap(({ views }) => views))
        for (const [index, { name, path, type, role, wide }] of to.elements.entries()) {
          const times = find.raw().get(from.name, from.elements[index]?.name) as [string, string]
          yield [to.name, to.arrayColumn, name, path, type, role, wide ? 1n : 0n, ++sequence, ...times]
        }
    },
  }
}

function tablesOfCollection(connection: Connection, collection: MovedCollection): MovedTable[] {
  const { name, keys, columns } = collection
  const organization = text('_organization_id')
  const keyColumns = keys.map(
    ({ to, type }): MovedColumn => ({ name: to, type: type === 'TEXT' ? 'text' : 'bigint' }),
  )
  const keyNames = keys.map(({ from }) => quoted(from))
  const values = columns.filter(({ column }) => column.role !== 'key')
  const table = (
    kind: TableKind,
    more: readonly MovedColumn[],
    moreValues: readonly string[],
    selectOf: (column: string) => string = quoted,
  ): MovedTable => {
    const own = ownColumns(kind)
    const select = [
      '"_organization_id"',
      ...keyNames,
      ...own.map((column) => selectOf(column.name)),
      ...moreValues,
    ]
    return {
      name: tableName(name, kind),
      columns: [organization, ...keyColumns, ...own, ...more],
      rows: reading(connection, selectSql(select, tableName(name, kind))),
    }
  }
  return [
    table('raw', [], []),
    table('history', [whole('_sequence')], ['_rowid_'], (column) =>
      column === '_first_seen_at' ? firstSeenSql(name, keyNames) : quoted(column),
    ),
    table(
      'typed',
      values.map(({ column }): MovedColumn => ({ name: column.name, type: TYPES[column.type] })),
      values.map(({ from }) => quoted(from)),
    ),
  ]
}

const TYPES = { INTEGER: 'bigint', REAL: 'double precision', TEXT: 'list' } as const

/**
 * When the item was first seen. Versions that an early version of the program wrote do not say it: then a time from which
 * `orders_changes` tells the same as in the file.
 */
function firstSeenSql(name: string, keyNames: readonly string[]): string {
  const history = quoted(`${name}_history`)
  const same = ['"_organization_id"', ...keyNames].map((key) => `p.${key} = ${history}.${key}`).join(' AND ')
  return `coalesce("_first_seen_at", (
    SELECT CASE p."_reason" WHEN 'changed' THEN p."_valid_from" END
    FROM ${history} AS p
    WHERE ${same} AND (p."_valid_to", p._rowid_) < (${history}."_valid_to", ${history}._rowid_)
    ORDER BY p."_valid_to" DESC, p._rowid_ DESC
    LIMIT 1
  ), "_valid_from")`
}

/** What users have put into the file, in words: a move leaves it there. */
export function strangersIn(connection: Connection): string[] {
  const found = connection
    .prepare(
      "SELECT type, name, tbl_name AS \"of\" FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite@_%' ESCAPE '@' ORDER BY type, name",
    )
    .all() as { type: string; name: string; of: string }[]
  const collections = connection
    .prepare('SELECT name FROM sync_collections ORDER BY name')
    .pluck()
    .all() as string[]
  const views = connection.prepare('SELECT DISTINCT view FROM sync_view_columns').pluck().all() as string[]
  const ours = new Set([...OURS, ...views, ...collections.flatMap((name) => namesOfTables(SQLITE, name))])
  return [
    ...found
      .filter(({ name }) => !ours.has(name))
      // Indexes of our own tables, in this version or an earlier one.
      .filter(
        ({ type, name, of }) => !(type === 'index' && name.startsWith('sync_') && of.startsWith('sync_')),
      )
      .map(({ type, name }) => `the ${type} ${printable(name, 200)}`),
    ...collections.flatMap((collection) =>
      addedColumns(connection, collection).map(
        (column) => `the column ${printable(`${collection}.${column}`, 200)}`,
      ),
    ),
  ]
}

const OURS = [
  ...OWN_TABLES,
  'sync_columns',
  'sync_known_columns',
  'sync_column_counts',
  'sync_view_columns',
  'sync_settings',
  'sync_status',
  'sync_help',
]

/** Columns that somebody has added to a typed table. */
function addedColumns(connection: Connection, collection: string): string[] {
  const known = connection
    .prepare('SELECT "column" FROM sync_columns WHERE collection = ?')
    .pluck()
    .all(collection)
  const allColumns = connection.prepare('SELECT name FROM pragma_table_xinfo(?)').pluck()
  const raw = allColumns.all(`${collection}_raw`)
  return (allColumns.all(collection) as string[]).filter(
    (name) => !known.includes(name) && !raw.includes(name),
  )
}
