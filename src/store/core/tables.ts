import { JobError } from '../../errors.ts'
import {
  assertSameKey,
  shapeOf,
  TABLE_KINDS,
  type TableKind,
  type TableShape,
  tableName,
  VIEW_KINDS,
  viewName,
} from '../columns/catalog.ts'
import type { Column, ColumnChange } from '../columns/column.ts'
import { type ConfiguredCollection, knownKey, loadCatalog } from './catalogs.ts'
import { dropViews, makeViews, ownViews } from './collection-views.ts'
import { MISFITS_INDEX, misfitsIndexSql } from './misfits.ts'
import { type Dialect, exec, one, quoted, type Rule, run, SQL_TYPES } from './sql.ts'

// The tables of a collection: what they are like, and how they are made, changed and dropped.

/** A column of ours. */
type OwnColumn = 'text' | 'timestamptz' | 'bigint'

/** The columns of ours that may be null. */
const NULLABLE = ['_changed_fields']

/** How a version began: `_seq` is the number of that event, `_change` what it was, `_changed_fields` a JSON list of paths. */
const BEGINNING: Readonly<Record<string, OwnColumn>> = {
  _seq: 'bigint',
  _change: 'text',
  _changed_fields: 'text',
}

/**
 * Our own columns of each table, beside the key. A row of `orders` and its JSON have one number, `_row`, which no other row of the collection ever
 * gets: the JSON is appended to a table that nobody scans, and the typed rows stay narrow. The history has all of a version.
 */
const TABLES: Record<TableKind, Readonly<Record<string, OwnColumn>>> = {
  typed: { _first_seen_at: 'timestamptz', _changed_at: 'timestamptz', _row: 'bigint' },
  json: { _row: 'bigint', ...BEGINNING, _json: 'text' },
  history: {
    _json: 'text',
    _valid_from: 'timestamptz',
    _valid_to: 'timestamptz',
    _reason: 'text',
    ...BEGINNING,
    _ended_seq: 'bigint',
  },
}

/** The names of our own columns of a table of a collection, beside the organization and the key. */
export function ownColumns(kind: TableKind): string[] {
  return Object.keys(TABLES[kind])
}

/** Whether the table has the key and the discovered columns. */
export function isTyped(kind: TableKind): boolean {
  return kind !== 'json'
}

/** Not a constraint of its table: SQLite can make an index again when the table is copied. */
const BY_KEY = '_by_key'

/** Indexes: by key; for `orders_changes` by time and by `seq`; for what ended. */
const INDEXES: readonly [end: string, kind: TableKind, on: (keys: string) => string][] = [
  [BY_KEY, 'typed', (keys) => `("_organization_id", ${keys})`],
  ['_at_change', 'typed', () => '("_changed_at")'],
  ['_json_seq', 'json', () => '("_seq")'],
  ['_history_by_key', 'history', (keys) => `("_organization_id", ${keys}, "_ended_seq")`],
  ['_history_by_end', 'history', () => '("_organization_id", "_valid_to")'],
  ['_history_at_end', 'history', () => '("_valid_to")'],
  ['_history_at_start', 'history', () => '("_valid_from")'],
  ['_history_seq_at_end', 'history', () => '("_ended_seq")'],
  ['_history_seq_at_start', 'history', () => '("_seq")'],
]

/** The ends of the names of a collection's tables, indexes and views, apart from those of arrays. */
export const NAME_ENDS: readonly string[] = [
  ...TABLE_KINDS.map((kind) => tableName('', kind)).filter((end) => end !== ''),
  ...INDEXES.map(([end]) => end),
  MISFITS_INDEX,
  ...VIEW_KINDS.map((kind) => viewName('', kind)),
]

/** The statements that make the tables of a collection, with their indexes. */
export function tablesSql(dialect: Dialect, shape: TableShape): string[] {
  const { name } = shape
  const keys = shape.keyColumns.map(quoted).join(', ')
  return [
    ...TABLE_KINDS.map((kind) => tableSql(dialect, shape, kind)),
    ...INDEXES.map(
      ([end, kind, on]) =>
        `CREATE ${end === BY_KEY ? 'UNIQUE ' : ''}INDEX ${quoted(dialect.limits.cut(name, end.length) + end)} ON ${quoted(tableName(name, kind))} ${on(keys)}`,
    ),
    ...misfitsIndexSql(dialect, shape),
  ]
}

function tableSql({ declared }: Dialect, shape: TableShape, kind: TableKind): string {
  const own = Object.entries(TABLES[kind]).map(([name, type]) => {
    const rest = name === '_row' ? ' PRIMARY KEY' : NULLABLE.includes(name) ? '' : ' NOT NULL'
    return `${quoted(name)} ${declared(type)}${rest}`
  })
  const keys = shape.keyColumns.map((name, index) => {
    const type = SQL_TYPES[shape.keyTypes[index] ?? 'TEXT']
    return `${quoted(name)} ${declared(type)} NOT NULL`
  })
  const discovered = shape.columns.map(({ name, type }) => `${quoted(name)} ${declared(SQL_TYPES[type])}`)
  const organization = `"_organization_id" ${declared('text')} NOT NULL`
  const lines = {
    typed: [organization, ...own, ...keys, ...discovered],
    json: own,
    history: [organization, ...keys, ...own, ...discovered],
  }
  return `CREATE TABLE ${quoted(tableName(shape.name, kind))} (\n  ${lines[kind].join(',\n  ')}\n)`
}

/** Adds columns to the tables of a collection, and gives others another type. */
export function* changeColumns(
  dialect: Dialect,
  collection: string,
  changes: readonly ColumnChange[],
): Rule<void> {
  const others = new Map<string, Column[]>()
  const added: string[] = []
  for (const kind of TABLE_KINDS.filter(isTyped)) {
    const table = tableName(collection, kind)
    const known = yield* dialect.columnTypes(table)
    const isOther = ({ name, type }: Column) => known.get(name) !== dialect.declared(SQL_TYPES[type])
    const columns = changes.map(({ column }) => column)
    const retyped = columns.filter((column) => known.has(column.name) && isOther(column))
    if (retyped.length > 0) others.set(table, retyped)
    for (const { name, type } of columns.filter((column) => !known.has(column.name)))
      added.push(
        `ALTER TABLE ${quoted(table)} ADD COLUMN ${quoted(name)} ${dialect.declared(SQL_TYPES[type])}`,
      )
  }
  if (others.size > 0) yield* dialect.retype(others, yield* ownViews(dialect, collection))
  yield* exec(added)
}

/** Why the store cannot keep the rows of a collection: it has another key in the mirror, or a name of its tables is taken. Null: it can. */
export function* refusalOf(dialect: Dialect, { name, key }: ConfiguredCollection): Rule<JobError | null> {
  try {
    const known = yield* knownKey(name)
    if (known) assertSameKey(name, known, key)
    else yield* assertNamesFree(dialect, name)
    return null
  } catch (error) {
    if (error instanceof JobError) return error
    throw error
  }
}

/** Why collections cannot be read into the mirror: each that has rows by another key, or whose tables' names are taken. */
export function* impossibleCollections(
  dialect: Dialect,
  collections: readonly ConfiguredCollection[],
): Rule<string[]> {
  const messages: string[] = []
  for (const collection of collections) {
    const refusal = yield* refusalOf(dialect, collection)
    // Tables without rows are made again with the other key.
    const isRemade = refusal && (yield* knownKey(collection.name)) && (yield* isWithoutRows(collection.name))
    if (refusal && !isRemade) messages.push(refusal.message)
  }
  return messages
}

function* assertNamesFree(dialect: Dialect, name: string): Rule<void> {
  const { cut, longestCollection } = dialect.limits
  if (Buffer.byteLength(name) > longestCollection)
    throw new JobError(
      'CONFIGURATION',
      `the name ${name} is too long for tables of PostgreSQL: give the collection a name of at most ${longestCollection} bytes, and put the address of the list into its path`,
    )
  const found = yield* dialect.relationNamed(['', ...NAME_ENDS].map((end) => cut(name, end.length) + end))
  if (!found) return
  throw new JobError(
    'CONFIGURATION',
    `the mirror cannot make the tables of ${name}, since it has a ${found.kind} ${found.name} already: give the collection ` +
      'another name (and the address as its path), or rename what is in the way',
  )
}

/** Whether a collection that the mirror knows has neither rows nor superseded versions. */
function* isWithoutRows(collection: string): Rule<boolean> {
  for (const kind of TABLE_KINDS)
    if ((yield* one(`SELECT 1 FROM ${quoted(tableName(collection, kind))} LIMIT 1`)) !== null) return false
  return true
}

/**
 * Makes the tables and views of a collection, as far as they are missing, and notes its key, which cannot change while it has rows. Tables
 * without rows are made again with another key. Throws JobError if they have rows, and for names that are taken.
 */
export function* ensureTables(dialect: Dialect, collection: ConfiguredCollection): Rule<void> {
  const { name, key } = collection
  // Two workers that make tables at once would each find a name free.
  yield* dialect.lockTables()
  const known = yield* knownKey(name)
  const isOther = known !== null && JSON.stringify(known) !== JSON.stringify(key)
  if (isOther) {
    if (!(yield* isWithoutRows(name))) assertSameKey(name, known, key)
    yield* dropCollection(dialect, name)
    // Open walks know their items by the other key, so they cannot be resumed.
    yield* run(
      "UPDATE sync_walks SET status = 'abandoned', finished_at = updated_at WHERE collection = :name AND status = 'open'",
      { name },
    )
  }
  const shape = shapeOf(name, yield* loadCatalog(dialect, collection))
  if (isOther || known === null) {
    yield* assertNamesFree(dialect, name)
    yield* run('INSERT INTO sync_collections (name, key) VALUES (:name, :key)', {
      name,
      key: JSON.stringify(key),
    })
    yield* exec(tablesSql(dialect, shape))
  }
  yield* makeViews(dialect, shape)
}

/** Makes the tables of every configured collection, so that queries work before the first row. */
export function* makeConfigured(dialect: Dialect, collections: readonly ConfiguredCollection[]): Rule<void> {
  // The job's own run reports why there are none; the other jobs continue.
  for (const collection of collections)
    if ((yield* impossibleCollections(dialect, [collection])).length === 0)
      yield* ensureTables(dialect, collection)
}

/** Drops the views and the tables of a collection, and deletes its columns and its key. */
export function* dropCollection(dialect: Dialect, name: string): Rule<void> {
  yield* dropViews(dialect, name)
  yield* exec(TABLE_KINDS.map((kind) => `DROP TABLE IF EXISTS ${quoted(tableName(name, kind))}`))
  yield* run('DELETE FROM sync_known_columns WHERE collection = :name', { name })
  yield* run('DELETE FROM sync_collections WHERE name = :name', { name })
}
