import type { TableShape } from '../columns/catalog.ts'
import { changesViewName, TABLE_KINDS, type TableKind, tableName } from '../columns/catalog.ts'
import type { Column } from '../columns/column.ts'
import { EVENT_COLUMNS, type EventTime, SEQ, SEQ_COLUMNS, SEQ_SAYS } from './changes-view.ts'
import { type Dialect, exec, quoted, type Rule, run, SQL_TYPES } from './sql.ts'

// What the tables of a collection are like, and what their columns hold; with their indexes.

/** A column of ours. `isLater`: tables of earlier versions get it, and it is null in the rows that those wrote. */
interface OwnColumn {
  type: 'text' | 'timestamptz' | 'bigint'
  says: string
  isLater?: true
}

/** What a table or view is, then its columns. */
export type Described = readonly [says: string, columns: Readonly<Record<string, string>>]

const text = (says: string): OwnColumn => ({ type: 'text', says })
const time = (says: string): OwnColumn => ({ type: 'timestamptz', says })

/** The column of `seq` beside one of a time. */
function seqColumn(at: EventTime): Record<string, OwnColumn> {
  const says = `seq of the event at ${at}; null: an earlier program wrote it`
  return { [SEQ_COLUMNS[at]]: { type: 'bigint', says, isLater: true } }
}

/** The tables, with our own columns beside `_organization_id` and the key. */
const TABLES: Record<TableKind, { says: string; own: Readonly<Record<string, OwnColumn>> }> = {
  typed: {
    says: "live items, one row each; what the other columns hold is in sync_columns, too. Ids are an organization's own: join by _organization_id, too",
    own: {
      _first_seen_at: time('when it was first seen; of one that had been removed: when it came back'),
      _changed_at: time('when its last change was seen'),
    },
  },
  raw: {
    says: 'the same rows as they were sent',
    own: {
      _json: text('the item as it was sent, every number exact'),
      _first_seen_at: time('as in the table without _raw'),
      _changed_at: time('as in the table without _raw'),
      ...seqColumn('_first_seen_at'),
      ...seqColumn('_changed_at'),
    },
  },
  history: {
    says: 'superseded versions, one row each: an item as it was for a while',
    own: {
      _json: text('the item as it was'),
      _valid_from: time('since when it was so'),
      _valid_to: time('until when: another version, or the end, was seen'),
      _reason: text('why it ended: changed, removed, out_of_scope (the filters changed)'),
      _first_seen_at: {
        ...time('when the item had first been seen; null in versions of an earlier program'),
        isLater: true,
      },
      _changed_fields: {
        ...text('JSON list of the paths that the next version changed; null: removed, or not known'),
        isLater: true,
      },
      ...seqColumn('_valid_from'),
      ...seqColumn('_valid_to'),
    },
  },
}

/** The names of our own columns of a table of a collection, beside `_organization_id` and the key. */
export function ownColumns(kind: TableKind): string[] {
  return Object.keys(TABLES[kind].own)
}

export const ORGANIZATION_SAYS = 'the organization whose item it is: organizations.id'
const KEY_SAYS = 'the key, which tells the items of an organization apart'

/** What a table of a collection holds. A column `KEY` stands for each of the key columns. */
function describedTable(kind: TableKind): Described {
  const { says, own } = TABLES[kind]
  const texts = Object.entries(own).map(([name, column]) => [name, column.says])
  return [says, { _organization_id: ORGANIZATION_SAYS, KEY: KEY_SAYS, ...Object.fromEntries(texts) }]
}

/** The tables and the view of changes of a collection, by the end of their names. */
export const OF_A_COLLECTION: Readonly<Record<string, Described>> = {
  ...Object.fromEntries(TABLE_KINDS.map((kind) => [tableName('', kind), describedTable(kind)])),
  [changesViewName('')]: [
    'one row per event, of history and live rows',
    { [SEQ]: SEQ_SAYS, _organization_id: ORGANIZATION_SAYS, KEY: KEY_SAYS, ...EVENT_COLUMNS },
  ],
}

const IS_CHANGED = ' WHERE "_changed_at" > "_first_seen_at"'

/** Indexes beside the keys: of the history; and for `orders_changes`, by time and by `seq`. The partial ones cost a first sync nothing. */
const INDEXES: readonly [
  end: string,
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

/** The ends of the names of a collection's tables, indexes and views, apart from those of arrays. */
export const NAME_ENDS: readonly string[] = [
  ...TABLE_KINDS.map((kind) => tableName('', kind)).filter((end) => end !== ''),
  ...INDEXES.map(([end]) => end),
  changesViewName(''),
]

/** The names of the tables, indexes and view of changes of a collection; a user may have taken one. */
export function namesOfTables({ limits }: Pick<Dialect, 'limits'>, collection: string): string[] {
  return ['', ...NAME_ENDS].map((end) => limits.cut(collection, end.length) + end)
}

/** The statements that make the tables of a collection, with their indexes and comments. */
export function tablesSql(dialect: Dialect, shape: TableShape): string[] {
  return [...TABLE_KINDS.flatMap((kind) => tableSql(dialect, shape, kind)), ...indexesSql(dialect, shape)]
}

function tableSql(dialect: Dialect, shape: TableShape, kind: TableKind): string[] {
  const { declared, more } = dialect
  const table = tableName(shape.name, kind)
  const keys = shape.keyColumns.map((name, index) => {
    const type = SQL_TYPES[shape.keyTypes[index] ?? 'TEXT']
    return `${quoted(name)} ${declared(type)} NOT NULL`
  })
  const own = Object.entries(TABLES[kind].own).map(
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
  return [
    `CREATE TABLE ${quoted(table)} (\n  ${lines.join(',\n  ')}\n)${more.ending}`,
    ...commentsOf(dialect, shape, kind),
  ]
}

function commentsOf(dialect: Dialect, shape: TableShape, kind: TableKind): string[] {
  const table = tableName(shape.name, kind)
  const [says, { KEY: ofKey = '', ...own }] = describedTable(kind)
  const further = kind === 'history' ? Object.entries(dialect.more.history) : []
  const texts = [
    ...Object.entries(own),
    ...further.map(([name, column]) => [name, column.says] as const),
    ...shape.keyColumns.map((name) => [name, ofKey] as const),
  ]
  return [
    ...dialect.comment(`TABLE ${quoted(table)}`, says),
    ...texts.flatMap(([name, said]) => dialect.comment(`COLUMN ${quoted(table)}.${quoted(name)}`, said)),
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

/** Makes what is missing of a collection's tables: one that a user has dropped, and columns and indexes that earlier versions did not have. */
export function* completeTables(dialect: Dialect, shape: TableShape): Rule<void> {
  for (const kind of TABLE_KINDS) {
    const table = tableName(shape.name, kind)
    const known = yield* dialect.columnTypes(table)
    const missing = Object.entries(TABLES[kind].own).filter(
      ([name, { isLater }]) => isLater && !known.has(name),
    )
    const added = missing.map(
      ([name, { type }]) =>
        `ALTER TABLE ${quoted(table)} ADD COLUMN ${quoted(name)} ${dialect.declared(type)}`,
    )
    yield* exec(known.size === 0 ? tableSql(dialect, shape, kind) : added)
  }
  yield* exec(indexesSql(dialect, shape))
  yield* raiseSeq(dialect, shape.name)
}

/** Raises the last `seq` of a collection to the greatest in its tables, so that new events get greater ones. */
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
