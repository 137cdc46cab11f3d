import type { TableShape } from '../../columns/catalog.ts'
import { type Connection, quoted } from '../sql.ts'

/** Columns of the history that tables of earlier versions get: null in the rows that those wrote. */
const LATER = ['"_first_seen_at"', '"_changed_fields"']

/** Our own columns of each of a collection's tables, around the key. */
const OWN = {
  typed: {
    before: [
      '"_organization_id" TEXT NOT NULL',
      '"_first_seen_at" TEXT NOT NULL',
      '"_changed_at" TEXT NOT NULL',
    ],
    after: [],
  },
  raw: {
    before: ['"_organization_id" TEXT NOT NULL'],
    after: ['"_json" TEXT NOT NULL', '"_first_seen_at" TEXT NOT NULL', '"_changed_at" TEXT NOT NULL'],
  },
  history: {
    before: ['"_organization_id" TEXT NOT NULL'],
    after: [
      '"_json" TEXT NOT NULL',
      '"_valid_from" TEXT NOT NULL',
      '"_valid_to" TEXT NOT NULL',
      '"_reason" TEXT NOT NULL',
      ...LATER.map((column) => `${column} TEXT`),
    ],
  },
}

export type TableKind = keyof typeof OWN

export const KINDS: readonly TableKind[] = ['typed', 'raw', 'history']

const BY_KEY = '_history_by_key'
const BY_END = '_history_by_end'

/** For `orders_changes`, by time. The partial one costs a first sync nothing. */
const EVENT_INDEXES = [
  { end: '_history_at_end', kind: 'history', on: '("_valid_to")' },
  { end: '_history_at_start', kind: 'history', on: '("_valid_from")' },
  { end: '_raw_at_start', kind: 'raw', on: '("_first_seen_at")' },
  { end: '_raw_at_change', kind: 'raw', on: '("_changed_at") WHERE "_changed_at" > "_first_seen_at"' },
] as const

/**
 * The name endings of what `createMissingTables` creates, beside the table with the collection's own name.
 */
const MADE_ENDS = ['_raw', '_history', BY_KEY, BY_END, ...EVENT_INDEXES.map(({ end }) => end), '_changes']

/** The name endings of a collection's tables, views and indexes, which SQLite keeps in one namespace. */
export const NAME_ENDS: readonly string[] = MADE_ENDS

/** The names of the tables, indexes and the view of changes of a collection. */
export function namesOfTables(collection: string): string[] {
  return ['', ...MADE_ENDS].map((end) => collection + end)
}

export function tableName(collection: string, kind: TableKind): string {
  return kind === 'typed' ? collection : `${collection}_${kind}`
}

/** The SQL that declares a table; undefined if there is none. */
export function declarationOf(connection: Connection, table: string): string | undefined {
  const schema = connection.prepare("SELECT sql FROM sqlite_schema WHERE type = 'table' AND name = ?").pluck()
  return schema.get(table) as string | undefined
}

export function typeOfColumn(connection: Connection, table: string, column: string): string | undefined {
  const sql = 'SELECT type FROM pragma_table_info(?) WHERE name = ?'
  return connection.prepare(sql).pluck().get(table, column) as string | undefined
}

/** Creates those of a collection's three tables that are missing. */
export function createMissingTables(connection: Connection, shape: TableShape): void {
  for (const kind of KINDS) connection.exec(createSql(shape, kind))
  connection.exec(historyIndexSql(shape))
  completeTables(connection, shape.name)
}

/** Adds what the tables of earlier versions have not: columns of the history, and indexes by time. */
export function completeTables(connection: Connection, collection: string): void {
  const history = tableName(collection, 'history')
  const has = connection.prepare('SELECT 1 FROM pragma_table_info(?) WHERE name = ?')
  for (const column of LATER) {
    if (has.get(history, column.slice(1, -1)) === undefined)
      connection.exec(`ALTER TABLE ${quoted(history)} ADD COLUMN ${column} TEXT`)
  }
  const byEnd = { end: BY_END, kind: 'history', on: '("_organization_id", "_valid_to")' } as const
  for (const { end, kind, on } of [byEnd, ...EVENT_INDEXES]) {
    const [index, table] = [collection + end, tableName(collection, kind)].map(quoted)
    connection.exec(`CREATE INDEX IF NOT EXISTS ${index} ON ${table} ${on}`)
  }
}

function createSql(shape: TableShape, kind: TableKind): string {
  const keys = shape.keyColumns.map((column, index) => `${quoted(column)} ${shape.keyTypes[index]} NOT NULL`)
  const discovered =
    kind === 'typed' ? shape.columns.map((column) => `${quoted(column.name)} ${column.type}`) : []
  const primary = ['_organization_id', ...shape.keyColumns].map(quoted).join(', ')
  const constraint = kind === 'history' ? [] : [`PRIMARY KEY (${primary})`]
  const lines = [...OWN[kind].before, ...keys, ...OWN[kind].after, ...discovered, ...constraint]
  return `CREATE TABLE IF NOT EXISTS ${quoted(tableName(shape.name, kind))} (\n  ${lines.join(',\n  ')}\n) STRICT`
}

function historyIndexSql(shape: TableShape): string {
  const columns = ['_organization_id', ...shape.keyColumns, '_valid_to'].map(quoted).join(', ')
  return `CREATE INDEX IF NOT EXISTS ${quoted(shape.name + BY_KEY)} ON ${quoted(tableName(shape.name, 'history'))} (${columns})`
}
