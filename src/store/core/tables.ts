import { JobError } from '../../errors.ts'
import {
  type Catalog,
  createCatalog,
  keyColumns,
  TABLE_KINDS,
  type TableKind,
  tableName,
  VIEW_KINDS,
} from '../columns/catalog.ts'
import type { Column } from '../columns/column.ts'
import { loadColumns, saveColumns } from './known-columns.ts'
import { all, type Dialect, exec, one, quoted, type Rule, run, SQL_TYPES } from './sql.ts'
import { makeViews, viewNames } from './views.ts'

// The tables of a collection: what is known of them (`sync_collections`), and how they are made, changed and dropped.

/** A collection by its name and its key, as dotted paths. */
export interface ConfiguredCollection {
  name: string
  key: readonly string[]
}

/** The collections that the mirror knows, by name. */
export function* knownCollections(): Rule<ConfiguredCollection[]> {
  const rows = yield* all<{ name: string; key: string }>(
    'SELECT name, key FROM sync_collections ORDER BY name',
  )
  return rows.map(({ name, key }) => ({ name, key: JSON.parse(key) as string[] }))
}

/** The dotted paths of a collection's key; null if the mirror does not know the collection. */
function* knownKey(collection: string, lock = ''): Rule<string[] | null> {
  const sql = `SELECT key FROM sync_collections WHERE name = :collection ${lock}`
  const row = yield* one<{ key: string }>(sql, { collection })
  return row && (JSON.parse(row.key) as string[])
}

/** Whether a collection has tables, by this key. */
function* hasTables({ name, key }: ConfiguredCollection): Rule<boolean> {
  return JSON.stringify(yield* knownKey(name)) === JSON.stringify(key)
}

/** What the tables of a collection are like until the transaction ends: another process may change a key to TEXT. Null without tables. */
export function* knownCatalog(dialect: Dialect, name: string): Rule<Catalog | null> {
  const key = yield* knownKey(name, dialect.lock('keep'))
  return key && (yield* loadColumns(dialect, name)).catalog
}

/**
 * Our own columns of each table, beside the key. A row of `orders` and its JSON have one number, `_row`, which no other row of the collection ever
 * gets: the JSON is appended to a table that nobody scans, and the typed rows stay narrow. How a version began: `_seq` is the number of that
 * event, `_change` what it was, `_changed_fields` a JSON list of paths, or null.
 */
const OWN_COLUMNS: Record<TableKind, Readonly<Record<string, string>>> = {
  typed: {
    _first_seen_at: 'timestamptz NOT NULL',
    _changed_at: 'timestamptz NOT NULL',
    _row: 'bigint PRIMARY KEY',
  },
  json: {
    _row: 'bigint PRIMARY KEY',
    _seq: 'bigint NOT NULL',
    _change: 'text NOT NULL',
    _changed_fields: 'text',
    _json: 'text NOT NULL',
  },
  history: {
    _json: 'text NOT NULL',
    _valid_from: 'timestamptz NOT NULL',
    _valid_to: 'timestamptz NOT NULL',
    _reason: 'text NOT NULL',
    _seq: 'bigint NOT NULL',
    _change: 'text NOT NULL',
    _changed_fields: 'text',
    _ended_seq: 'bigint NOT NULL',
  },
}

/** Indexes, whose names begin with `_`, as no collection's does: by key, which is no constraint, so that SQLite can make it again when the table is copied; for `orders_changes` by time and by `seq`; for what ended. */
const INDEXES: readonly [end: string, kind: TableKind, on: (keys: string) => string][] = [
  ['_by_key', 'typed', (keys) => `("_organization_id", ${keys})`],
  ['_at_change', 'typed', () => '("_changed_at")'],
  ['_json_seq', 'json', () => '("_seq")'],
  ['_history_by_key', 'history', (keys) => `("_organization_id", ${keys}, "_ended_seq")`],
  ['_history_by_end', 'history', () => '("_organization_id", "_valid_to")'],
  ['_history_at_end', 'history', () => '("_valid_to")'],
  ['_history_at_start', 'history', () => '("_valid_from")'],
  ['_history_seq_at_end', 'history', () => '("_ended_seq")'],
  ['_history_seq_at_start', 'history', () => '("_seq")'],
]

/** The statements that make the tables of a collection, with their indexes. */
export function tablesSql(dialect: Dialect, { name, keys, values }: Catalog): string[] {
  const declare = (column: string, type: string) => declaration(dialect, column, type)
  const ofKey = keys.map((key) => declare(key.name, `${SQL_TYPES[key.type]} NOT NULL`))
  const identity = [declare('_organization_id', 'text NOT NULL'), ...ofKey]
  const discovered = values.map((column) => declare(column.name, SQL_TYPES[column.type]))
  const tables = TABLE_KINDS.map((kind) => {
    const own = Object.entries(OWN_COLUMNS[kind]).map(([column, type]) => declare(column, type))
    const lines = kind === 'json' ? own : [...identity, ...own, ...discovered]
    return `CREATE TABLE ${quoted(tableName(name, kind))} (\n  ${lines.join(',\n  ')}\n)`
  })
  const indexes = INDEXES.map(([end, kind, on], place) => {
    const index = quoted(`_${name}${end}`)
    const unique = place === 0 ? 'UNIQUE ' : ''
    return `CREATE ${unique}INDEX ${index} ON ${quoted(tableName(name, kind))} ${on(keys.map((key) => quoted(key.name)).join(', '))}`
  })
  return [...tables, ...indexes, ...misfitIndexes(dialect, name, values)]
}

function declaration({ declared }: Dialect, column: string, type: string): string {
  return `${quoted(column)} ${type.replace(/^(?:double precision|[a-z]+)/, (word) => declared(word))}`
}

/** The indexes by which `status` counts the values of NAME__text columns: nearly always none of millions. */
function misfitIndexes({ limits }: Dialect, collection: string, columns: readonly Column[]): string[] {
  return columns
    .filter(({ role }) => role === 'text')
    .map(({ name }) => {
      const index = quoted(limits.cut(`_${collection}_${name}`, 0))
      return `CREATE INDEX IF NOT EXISTS ${index} ON ${quoted(collection)} (${quoted(name)}) WHERE ${quoted(name)} IS NOT NULL`
    })
}

/** Gives the tables these columns, which are new or have another type than in this catalog, and notes them. `at`: ISO 8601. */
export function* changeColumns(
  dialect: Dialect,
  { name: collection, keys, values }: Catalog,
  changed: readonly Column[],
  at: string,
): Rule<void> {
  const tables = (['typed', 'history'] as const).map((kind) => tableName(collection, kind))
  const types = new Map([...keys, ...values].map(({ name, type }) => [name, type]))
  const added = changed.filter(({ name }) => !types.has(name))
  const retyped = changed.filter(({ name, type }) => types.has(name) && types.get(name) !== type)
  if (retyped.length > 0) yield* dialect.retype(tables, retyped, yield* viewNames(collection))
  yield* exec([
    ...tables.flatMap((table) =>
      added.map(
        ({ name, type }) =>
          `ALTER TABLE ${quoted(table)} ADD COLUMN ${declaration(dialect, name, SQL_TYPES[type])}`,
      ),
    ),
    ...misfitIndexes(dialect, collection, added),
  ])
  yield* saveColumns(dialect, { collection, view: '', arrayColumn: '', at }, changed)
}

/** Why the store cannot keep the rows of a collection: it has rows by another key, or a name of its tables is taken. Null: it can. */
function* refusalOf(dialect: Dialect, collection: ConfiguredCollection): Rule<JobError | null> {
  const { name, key } = collection
  const known = yield* knownKey(name)
  if (!known) return yield* nameTaken(dialect, name)
  if ((yield* hasTables(collection)) || (yield* isWithoutRows(name))) return null
  return refused(
    `the mirror keeps ${name} by the key ${known.join(', ')}, and the configuration says ${key.join(', ')}: configure the former ` +
      `key again; or, to read everything again by the new one, run "admin-mirror forget --org ORG --collection ${name} ` +
      '--yes" for every organization, and then sync',
  )
}

function* nameTaken(dialect: Dialect, name: string): Rule<JobError | null> {
  const taken = yield* dialect.taken([...TABLE_KINDS, ...VIEW_KINDS].map((kind) => tableName(name, kind)))
  if (taken === null) return null
  return refused(
    `the mirror cannot make the tables of ${name}, since something else in it is called ${taken}: give the collection ` +
      'another name (and the address as its path), or rename what is in the way',
  )
}

function refused(message: string): JobError {
  return new JobError('CONFIGURATION', message)
}

/** Whether a collection that the mirror knows has neither rows nor superseded versions. */
function* isWithoutRows(collection: string): Rule<boolean> {
  for (const kind of TABLE_KINDS)
    if ((yield* one(`SELECT 1 FROM ${quoted(tableName(collection, kind))} LIMIT 1`)) !== null) return false
  return true
}

/** Makes the tables and views of a collection, unless they are there, and notes its key. Returns why that cannot be. `at`: ISO 8601. */
export function* ensureTables(
  dialect: Dialect,
  collection: ConfiguredCollection,
  at: string,
): Rule<JobError | null> {
  const { name, key } = collection
  if (yield* hasTables(collection)) return null
  // Two workers that make tables at once would each find a name free.
  yield* one(`SELECT value FROM sync_settings WHERE name = 'version' ${dialect.lock('change')}`)
  const refusal = yield* refusalOf(dialect, collection)
  if (refusal || (yield* hasTables(collection))) return refusal
  if (yield* knownKey(name)) {
    yield* exec((yield* viewNames(name)).map((view) => `DROP VIEW IF EXISTS ${quoted(view)}`))
    yield* exec(TABLE_KINDS.map((kind) => `DROP TABLE ${quoted(tableName(name, kind))}`))
    yield* run('DELETE FROM sync_known_columns WHERE collection = :name', { name })
    yield* run('DELETE FROM sync_collections WHERE name = :name', { name })
    // Open walks know their items by the other key, so they cannot be resumed.
    yield* run(
      "UPDATE sync_walks SET status = 'abandoned', finished_at = updated_at WHERE collection = :name AND status = 'open'",
      { name },
    )
  }
  const catalog = createCatalog(keyColumns(key, dialect.limits), dialect.limits, name)
  const values = { name, key: JSON.stringify(key) }
  yield* run('INSERT INTO sync_collections (name, key) VALUES (:name, :key)', values)
  yield* exec(tablesSql(dialect, catalog))
  yield* saveColumns(dialect, { collection: name, view: '', arrayColumn: '', at }, catalog.keys)
  yield* makeViews(dialect, { catalog, views: new Map() })
  return null
}

/** Makes the tables of every configured collection, so that queries work before the first row. Returns why some cannot be made: the runs of their jobs say so, too. `at`: ISO 8601. */
export function* makeConfigured(
  dialect: Dialect,
  collections: readonly ConfiguredCollection[],
  at: string,
): Rule<JobError[]> {
  const refusals: JobError[] = []
  for (const collection of collections) {
    const refusal = yield* ensureTables(dialect, collection, at)
    if (refusal) refusals.push(refusal)
  }
  return refusals
}

/** Makes the views of all collections anew, as this version has them. */
export function* remakeViews(dialect: Dialect): Rule<void> {
  for (const { name } of yield* knownCollections())
    yield* makeViews(dialect, yield* loadColumns(dialect, name))
}
