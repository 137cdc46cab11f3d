import type { TableShape } from '../columns/catalog.ts'
import type { Column } from '../columns/column.ts'
import { OF_A_COLLECTION } from '../help-texts.ts'
import { type EventTime, SEQ_COLUMNS } from './changes-view.ts'
import { type INDEX_ENDS, TABLE_KINDS, type TableKind, tableName } from './names.ts'
import { type Dialect, exec, quoted, type Rule, run, SQL_TYPES } from './sql.ts'

// What the tables of a collection are like, with their indexes.

/** A column of ours beside the key. `isLater`: tables of earlier versions get it, and it is null in the rows that those wrote. */
interface OwnColumn {
  type: 'text' | 'timestamptz' | 'bigint'
  isLater?: true
}

const TEXT: OwnColumn = { type: 'text' }
const TIME: OwnColumn = { type: 'timestamptz' }

const seqColumns = (...times: EventTime[]): Record<string, OwnColumn> =>
  Object.fromEntries(times.map((time) => [SEQ_COLUMNS[time], { type: 'bigint', isLater: true }]))

const OWN: Record<TableKind, Readonly<Record<string, OwnColumn>>> = {
  typed: { _first_seen_at: TIME, _changed_at: TIME },
  raw: {
    _json: TEXT,
    _first_seen_at: TIME,
    _changed_at: TIME,
    ...seqColumns('_first_seen_at', '_changed_at'),
  },
  history: {
    _json: TEXT,
    _valid_from: TIME,
    _valid_to: TIME,
    _reason: TEXT,
    _first_seen_at: { ...TIME, isLater: true },
    _changed_fields: { ...TEXT, isLater: true },
    ...seqColumns('_valid_from', '_valid_to'),
  },
}

/** Our own columns of a table of a collection, beside the key. */
export function ownColumns(kind: TableKind): ({ name: string } & Pick<OwnColumn, 'type'>)[] {
  return Object.entries(OWN[kind]).map(([name, { type }]) => ({ name, type }))
}

const IS_CHANGED = ' WHERE "_changed_at" > "_first_seen_at"'

/** Indexes beside the keys: of the history; and for `orders_changes`, by time and by `seq`. The partial ones cost a first sync nothing. */
const INDEXES: readonly [
  end: (typeof INDEX_ENDS)[number],
  kind: TableKind,
  on: (keys: string, seqOf: Dialect['seqOf']) => string,
][] = [
  ['_history_by_key', 'history', (keys) => `("_organization_id", ${keys}, "_valid_to")`],
  ['_history_by_end', 'history', () => '("_organization_id", "_valid_to")'],
  ['_history_at_end', 'history', () => '("_valid_to")'],
  ['_history_at_start', 'history', () => '("_valid_from")'],
  ['_raw_at_start', 'raw', () => '("_first_seen_at")'],
  ['_raw_at_change', 'raw', () => `("_changed_at")${IS_CHANGED}`],
  ['_history_seq_at_end', 'history', (_, seqOf) => `((${seqOf('_valid_to')}))`],
  ['_history_seq_at_start', 'history', (_, seqOf) => `((${seqOf('_valid_from')}))`],
  ['_raw_seq_at_start', 'raw', (_, seqOf) => `((${seqOf('_first_seen_at')}))`],
  ['_raw_seq_at_change', 'raw', (_, seqOf) => `((${seqOf('_changed_at')}))${IS_CHANGED}`],
]

/** The statements that make the tables of a collection, as far as they are missing. */
export function tablesSql(dialect: Dialect, shape: TableShape): string[] {
  return [
    ...TABLE_KINDS.flatMap((kind) => [tableSql(dialect, shape, kind), ...commentsOf(dialect, shape, kind)]),
    ...indexesSql(dialect, shape),
  ]
}

function tableSql({ declared, more }: Dialect, shape: TableShape, kind: TableKind): string {
  const keys = shape.keyColumns.map((name, index) => {
    const type = SQL_TYPES[shape.keyTypes[index] ?? 'TEXT']
    return `${quoted(name)} ${declared(type)} NOT NULL`
  })
  const own = Object.entries(OWN[kind]).map(
    ([name, { type, isLater }]) => `${quoted(name)} ${declared(type)}${isLater ? '' : ' NOT NULL'}`,
  )
  const discovered = shape.columns.map(({ name, type }) => `${quoted(name)} ${declared(SQL_TYPES[type])}`)
  const primary = ['_organization_id', ...shape.keyColumns].map(quoted).join(', ')
  const lines = [
    `"_organization_id" ${declared('text')} NOT NULL`,
    ...(kind === 'typed' ? [...own, ...keys, ...discovered] : [...keys, ...own]),
    ...(kind === 'history'
      ? Object.entries(more.history).map(([name, { type }]) => `${quoted(name)} ${type}`)
      : [`PRIMARY KEY (${primary})`]),
  ]
  return `CREATE TABLE IF NOT EXISTS ${quoted(tableName(shape.name, kind))} (\n  ${lines.join(',\n  ')}\n)${more.ending}`
}

function commentsOf(dialect: Dialect, shape: TableShape, kind: TableKind): string[] {
  const table = tableName(shape.name, kind)
  const [says, columns] = OF_A_COLLECTION[kind === 'typed' ? '' : `_${kind}`] ?? ['', {}]
  const { KEY: ofKey = '', ...own } = columns
  const more =
    kind === 'history'
      ? Object.entries(dialect.more.history).map(([name, { says: text }]): [string, string] => [name, text])
      : []
  const texts: Record<string, string> = {
    ...own,
    ...Object.fromEntries(more),
    ...Object.fromEntries(shape.keyColumns.map((name) => [name, ofKey])),
  }
  return [
    ...dialect.comment(`TABLE ${quoted(table)}`, says),
    ...Object.entries(texts).flatMap(([name, text]) =>
      dialect.comment(`COLUMN ${quoted(table)}.${quoted(name)}`, text),
    ),
    ...(kind === 'typed' ? shape.columns.flatMap((column) => commentOf(dialect, table, column)) : []),
  ]
}

/** The most characters of a path in a comment: it may be a megabyte long. */
const LONGEST_COMMENT = 1000

function commentOf({ comment }: Dialect, table: string, { name, path, role }: Column): string[] {
  const shown = path.length > LONGEST_COMMENT ? `${path.slice(0, LONGEST_COMMENT)}...` : path
  const says = role === 'text' ? `${shown}, where its value does not fit the column beside it` : shown
  return comment(`COLUMN ${quoted(table)}.${quoted(name)}`, says)
}

function indexesSql(
  { limits, seqOf }: Dialect,
  { name, keyColumns }: Pick<TableShape, 'name' | 'keyColumns'>,
): string[] {
  return INDEXES.map(([end, kind, on]) => {
    const index = limits.cut(name, end.length) + end
    const columns = on(keyColumns.map(quoted).join(', '), seqOf)
    return `CREATE INDEX IF NOT EXISTS ${quoted(index)} ON ${quoted(tableName(name, kind))} ${columns}`
  })
}

/** The statements that add a discovered column to the typed table. */
export function addColumnSql(dialect: Dialect, table: string, column: Column): string[] {
  const { name, type } = column
  return [
    `ALTER TABLE ${quoted(table)} ADD COLUMN ${quoted(name)} ${dialect.declared(SQL_TYPES[type])}`,
    ...commentOf(dialect, table, column),
  ]
}

/** Adds what tables of earlier versions lack: columns, indexes, and a `seq` above the numbers of all their events. */
export function* completeTables(
  dialect: Dialect,
  shape: Pick<TableShape, 'name' | 'keyColumns'>,
): Rule<void> {
  for (const kind of TABLE_KINDS) {
    const table = tableName(shape.name, kind)
    const known = yield* dialect.columnTypes(table)
    const missing = Object.entries(OWN[kind]).filter(([name, { isLater }]) => isLater && !known.has(name))
    yield* exec(
      missing.map(
        ([name, { type }]) =>
          `ALTER TABLE ${quoted(table)} ADD COLUMN ${quoted(name)} ${dialect.declared(type)}`,
      ),
    )
  }
  yield* exec(indexesSql(dialect, shape))
  yield* raiseSeq(dialect, shape.name)
}

function* raiseSeq({ seqOf }: Dialect, collection: string): Rule<void> {
  const [raw, history] = (['raw', 'history'] as const).map((kind) => quoted(tableName(collection, kind)))
  yield* run(
    `
      INSERT INTO sync_seq AS last (collection, seq)
      SELECT :collection::text, max(seq)
      FROM (
        SELECT max(${seqOf('_first_seen_at')}) AS seq FROM ${raw}
        UNION ALL
        SELECT max(${seqOf('_changed_at')}) FROM ${raw}${IS_CHANGED}
        UNION ALL
        SELECT max(${seqOf('_valid_to')}) FROM ${history}
      ) AS events
      HAVING max(seq) IS NOT NULL
      ON CONFLICT (collection) DO UPDATE SET seq = CASE WHEN last.seq < excluded.seq THEN excluded.seq ELSE last.seq END
    `,
    { collection },
  )
}
