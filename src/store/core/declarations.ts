import type { TableShape } from '../columns/catalog.ts'
import {
  changesViewName,
  TABLE_KINDS,
  type TableKind,
  tableName,
  versionsViewName,
} from '../columns/catalog.ts'
import type { Column } from '../columns/column.ts'
import { MISFITS_INDEX, misfitsIndexSql } from './misfits.ts'
import { type Dialect, exec, quoted, type Rule, SQL_TYPES } from './sql.ts'

// What the tables of a collection are like, with their indexes.

/** A column of ours. */
type OwnColumn = 'text' | 'timestamptz' | 'bigint'

/** The columns of ours that may be null. */
const NULLABLE = ['_changed_fields']

/** Our own columns of each table, beside `_organization_id` and the key. The typed ones and the history have the discovered columns, too. */
const TABLES: Record<TableKind, Readonly<Record<string, OwnColumn>>> = {
  typed: { _first_seen_at: 'timestamptz', _changed_at: 'timestamptz' },
  raw: {
    _json: 'text',
    _first_seen_at: 'timestamptz',
    _changed_at: 'timestamptz',
    _first_seen_seq: 'bigint',
    _changed_seq: 'bigint',
  },
  history: {
    _json: 'text',
    _valid_from: 'timestamptz',
    _valid_to: 'timestamptz',
    _reason: 'text',
    // When the item had first been seen.
    _first_seen_at: 'timestamptz',
    // JSON list of the paths that the next version changed; null: removed.
    _changed_fields: 'text',
    _valid_from_seq: 'bigint',
    _valid_to_seq: 'bigint',
  },
}

/** The names of our own columns of a table of a collection, beside `_organization_id` and the key. */
export function ownColumns(kind: TableKind): string[] {
  return Object.keys(TABLES[kind])
}

/** Whether the table has the discovered columns. */
export function isTyped(kind: TableKind): boolean {
  return kind !== 'raw'
}

const IS_CHANGED = ' WHERE "_changed_at" > "_first_seen_at"'

/** Indexes beside the keys: of the history; and for `orders_changes`, by time and by `seq`. The partial ones cost a first sync nothing. */
const INDEXES: readonly [end: string, kind: TableKind, on: (keys: string) => string][] = [
  ['_history_by_key', 'history', (keys) => `("_organization_id", ${keys}, "_valid_to")`],
  ['_history_by_end', 'history', () => '("_organization_id", "_valid_to")'],
  ['_history_at_end', 'history', () => '("_valid_to")'],
  ['_history_at_start', 'history', () => '("_valid_from")'],
  ['_raw_at_start', 'raw', () => '("_first_seen_at")'],
  ['_raw_at_change', 'raw', () => `("_changed_at")${IS_CHANGED}`],
  ['_history_seq_at_end', 'history', () => '("_valid_to_seq")'],
  ['_history_seq_at_start', 'history', () => '("_valid_from_seq")'],
  ['_raw_seq_at_start', 'raw', () => '("_first_seen_seq")'],
  ['_raw_seq_at_change', 'raw', () => `("_changed_seq")${IS_CHANGED}`],
]

/** The ends of the names of a collection's tables, indexes and views, apart from those of arrays. */
export const NAME_ENDS: readonly string[] = [
  ...TABLE_KINDS.map((kind) => tableName('', kind)).filter((end) => end !== ''),
  ...INDEXES.map(([end]) => end),
  MISFITS_INDEX,
  changesViewName(''),
  versionsViewName(''),
]

/** The names of the tables, indexes and views of a collection; a user may have taken one. */
export function namesOfTables({ limits }: Pick<Dialect, 'limits'>, collection: string): string[] {
  return ['', ...NAME_ENDS].map((end) => limits.cut(collection, end.length) + end)
}

/** The statements that make the tables of a collection, with their indexes. */
export function tablesSql(dialect: Dialect, shape: TableShape): string[] {
  return [...TABLE_KINDS.map((kind) => tableSql(dialect, shape, kind)), ...indexesSql(dialect, shape)]
}

function tableSql({ declared, furtherOfHistory }: Dialect, shape: TableShape, kind: TableKind): string {
  const keys = shape.keyColumns.map((name, index) => {
    const type = SQL_TYPES[shape.keyTypes[index] ?? 'TEXT']
    return `${quoted(name)} ${declared(type)} NOT NULL`
  })
  const own = Object.entries(TABLES[kind]).map(
    ([name, type]) => `${quoted(name)} ${declared(type)}${NULLABLE.includes(name) ? '' : ' NOT NULL'}`,
  )
  const discovered = isTyped(kind)
    ? shape.columns.map(({ name, type }) => `${quoted(name)} ${declared(SQL_TYPES[type])}`)
    : []
  const primary = ['_organization_id', ...shape.keyColumns].map(quoted).join(', ')
  const lines = [
    `"_organization_id" ${declared('text')} NOT NULL`,
    ...(kind === 'typed' ? [...own, ...keys] : [...keys, ...own]),
    ...(kind === 'history' ? furtherOfHistory : []),
    ...discovered,
    ...(kind === 'history' ? [] : [`PRIMARY KEY (${primary})`]),
  ]
  return `CREATE TABLE ${quoted(tableName(shape.name, kind))} (\n  ${lines.join(',\n  ')}\n)`
}

function indexesSql(dialect: Dialect, shape: TableShape): string[] {
  const { name, keyColumns } = shape
  const keys = keyColumns.map(quoted).join(', ')
  const indexes = INDEXES.map(([end, kind, on]) => {
    const index = dialect.limits.cut(name, end.length) + end
    return `CREATE INDEX IF NOT EXISTS ${quoted(index)} ON ${quoted(tableName(name, kind))} ${on(keys)}`
  })
  return [...indexes, ...misfitsIndexSql(dialect, shape)]
}

/** The statement that adds a discovered column to a table. */
export function addColumnSql({ declared }: Dialect, table: string, { name, type }: Column): string {
  return `ALTER TABLE ${quoted(table)} ADD COLUMN ${quoted(name)} ${declared(SQL_TYPES[type])}`
}

/** Makes what is missing of a collection's tables: a user may have dropped one. */
export function* completeTables(dialect: Dialect, shape: TableShape): Rule<void> {
  for (const kind of TABLE_KINDS) {
    const known = yield* dialect.columnTypes(tableName(shape.name, kind))
    if (known.size === 0) yield* exec([tableSql(dialect, shape, kind)])
  }
  yield* exec(indexesSql(dialect, shape))
}
