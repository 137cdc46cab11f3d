import type { TableShape } from '../../columns/catalog.ts'
import { type EventTime, SEQ_COLUMNS } from '../../columns/changes-view.ts'
import { KINDS, type TableKind, tableName } from '../../core/sql.ts'
import { type Connection, quoted } from '../sql.ts'
import { seqSql } from './seq.ts'

export { KINDS, type TableKind, tableName }

const seqColumns = (...times: EventTime[]) => times.map((time) => `${quoted(SEQ_COLUMNS[time])} INTEGER`)

/** Columns that tables of earlier versions get: null in the rows that those wrote. */
const LATER = {
  typed: [],
  raw: seqColumns('_first_seen_at', '_changed_at'),
  history: ['"_first_seen_at" TEXT', '"_changed_fields" TEXT', ...seqColumns('_valid_from', '_valid_to')],
}

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
    after: [
      '"_json" TEXT NOT NULL',
      '"_first_seen_at" TEXT NOT NULL',
      '"_changed_at" TEXT NOT NULL',
      ...LATER.raw,
    ],
  },
  history: {
    before: ['"_organization_id" TEXT NOT NULL'],
    after: [
      '"_json" TEXT NOT NULL',
      '"_valid_from" TEXT NOT NULL',
      '"_valid_to" TEXT NOT NULL',
      '"_reason" TEXT NOT NULL',
      ...LATER.history,
    ],
  },
}

const BY_KEY = '_history_by_key'
const BY_END = '_history_by_end'

const IS_CHANGED = ' WHERE "_changed_at" > "_first_seen_at"'

/** For `orders_changes`, by time and by `seq`. The partial ones cost a first sync nothing. */
const EVENT_INDEXES = [
  { end: '_history_at_end', kind: 'history', on: '("_valid_to")' },
  { end: '_history_at_start', kind: 'history', on: '("_valid_from")' },
  { end: '_raw_at_start', kind: 'raw', on: '("_first_seen_at")' },
  { end: '_raw_at_change', kind: 'raw', on: `("_changed_at")${IS_CHANGED}` },
  { end: '_history_seq_at_end', kind: 'history', on: `(${seqSql('_valid_to')})` },
  { end: '_history_seq_at_start', kind: 'history', on: `(${seqSql('_valid_from')})` },
  { end: '_raw_seq_at_start', kind: 'raw', on: `(${seqSql('_first_seen_at')})` },
  { end: '_raw_seq_at_change', kind: 'raw', on: `(${seqSql('_changed_at')})${IS_CHANGED}` },
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

/** Adds what the tables of earlier versions have not: columns, and indexes for events. */
export function completeTables(connection: Connection, collection: string): void {
  for (const kind of KINDS) {
    const table = tableName(collection, kind)
    for (const column of LATER[kind]) {
      const [, name = ''] = column.split('"')
      if (typeOfColumn(connection, table, name) === undefined)
        connection.exec(`ALTER TABLE ${quoted(table)} ADD COLUMN ${column}`)
    }
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
