import { JobError } from '../../errors.ts'
import { assertSameKey, type Catalog, createCatalog, shapeOf, splitKey } from '../columns/catalog.ts'
import { type Column, columnType } from '../columns/column.ts'
import type { ArrayView } from '../columns/elements.ts'
import { tablesSql } from './declarations.ts'
import { namesOfTables, TABLE_KINDS, tableName } from './names.ts'
import { all, type Dialect, exec, type Keys, one, quoted, type Rule, run } from './sql.ts'

// `sync_collections`, `sync_known_columns` and `sync_view_columns`: which collections have tables, and what these and the views are like.

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
export function* knownKey(collection: string): Rule<string[] | null> {
  const row = yield* one<{ key: string }>('SELECT key FROM sync_collections WHERE name = :collection', {
    collection,
  })
  return row && (JSON.parse(row.key) as string[])
}

/** The key columns of a collection as they are now: one may become TEXT. Null without tables. */
export function* knownKeys(dialect: Dialect, collection: string): Rule<Keys | null> {
  const key = yield* knownKey(collection)
  return key && shapeOf(collection, yield* loadCatalog(dialect, { name: collection, key }))
}

/** The discovered columns of a collection, the oldest first. */
export function* loadColumns({ sequence }: Dialect, collection: string): Rule<Column[]> {
  const rows = yield* all<Omit<Column, 'wide'> & { wide: number }>(
    `
      SELECT "column" AS name, path, type, role, wide
      FROM sync_known_columns
      WHERE collection = :collection
      ORDER BY ${sequence}
    `,
    { collection },
  )
  return rows.map((row) => ({ ...row, type: columnType(row.type), wide: row.wide === 1 }))
}

/**
 * The views of a collection. Earlier versions made one view for two arrays whose names are the same once PostgreSQL has cut them: it is that of
 * the first one. No collection's name has two underscores, so a view belongs to one collection.
 */
export function* loadArrayViews({ sequence }: Dialect, collection: string): Rule<ArrayView[]> {
  type Row = Omit<Column, 'wide'> & { view: string; arrayColumn: string; wide: number; sentAt: string | null }
  const rows = yield* all<Row>(
    `
      SELECT
        view, array_column AS "arrayColumn", "column" AS name, path, type, role, wide,
        (
          SELECT path FROM sync_known_columns
          WHERE collection = :collection::text AND "column" = array_column AND wide = 1
        ) AS "sentAt"
      FROM sync_view_columns
      WHERE ${OF_VIEWS}
      ORDER BY ${sequence}
    `,
    { collection },
  )
  return [...Map.groupBy(rows, ({ view }) => view)].flatMap(([name, [first, ...others]]) => {
    if (!first) return []
    const { arrayColumn, sentAt } = first
    const elements = [first, ...others.filter((other) => other.arrayColumn === arrayColumn)].map(
      ({ name: column, path, type, role, wide }) => ({
        name: column,
        path,
        type: columnType(type),
        role,
        wide: wide === 1,
      }),
    )
    return { name, arrayColumn, sentAt, elements }
  })
}

/** A condition on `view`: it is of this collection. */
export const OF_VIEWS = `substr(view, 1, length(:collection::text) + 2) = :collection::text || '__'`

export function* loadCatalog(
  dialect: Dialect,
  { name, key }: ConfiguredCollection,
  isFullReported = false,
): Rule<Catalog> {
  return createCatalog(yield* loadColumns(dialect, name), splitKey(key), isFullReported, dialect.limits)
}

const SAVED_COLUMNS = { name: 'text', path: 'text', type: 'text', role: 'text', wide: 'bigint' }

/** Notes columns of a collection that are added, or changed. `at`: ISO 8601. */
export function saveColumns(
  dialect: Dialect,
  collection: string,
  columns: readonly Column[],
  at: string,
): Rule<void> {
  return noteColumns(dialect, 'sync_known_columns', { collection }, columns, at)
}

/** Notes the columns of a view. */
export function saveView(
  dialect: Dialect,
  { name: view, arrayColumn, elements }: ArrayView,
  at: string,
): Rule<void> {
  return noteColumns(dialect, 'sync_view_columns', { view, array_column: arrayColumn }, elements, at)
}

/** `of`: the columns that are the same in all lines, the key's first. */
function* noteColumns(
  dialect: Dialect,
  table: string,
  of: Readonly<Record<string, string>>,
  columns: readonly Column[],
  at: string,
): Rule<void> {
  const [key = '', ...more] = Object.keys(of)
  const names = [key, ...more]
  yield* dialect.eachLine(
    `
      INSERT INTO ${table} AS known (${names.join(', ')}, "column", path, type, role, wide, first_seen_at, last_changed_at)
      SELECT
        ${names.map((name) => `:${name}::text`).join(', ')}, line.name, line.path, line.type, line.role, line.wide,
        :at::timestamptz, :at::timestamptz
      FROM ${dialect.lines(SAVED_COLUMNS)}
      WHERE true
      ON CONFLICT (${key}, "column") DO UPDATE
      SET
        last_changed_at = CASE WHEN known.type = excluded.type THEN known.last_changed_at ELSE excluded.last_changed_at END,
        ${[...more, 'path', 'type', 'wide'].map((name) => `${name} = excluded.${name}`).join(', ')}
    `,
    SAVED_COLUMNS,
    columns.map(({ name, path, type, role, wide }) => [name, path, type, role, wide ? 1 : 0]),
    { ...of, at },
  )
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
    // Tables without rows are made again by the other key.
    const isRemade = refusal && (yield* knownKey(collection.name)) && (yield* isWithoutRows(collection.name))
    if (refusal && !isRemade) messages.push(refusal.message)
  }
  return messages
}

/** Whether a collection that the mirror knows has neither rows nor superseded versions. */
export function* isWithoutRows(collection: string): Rule<boolean> {
  for (const kind of TABLE_KINDS)
    if ((yield* one(`SELECT 1 FROM ${quoted(tableName(collection, kind))} LIMIT 1`)) !== null) return false
  return true
}

/**
 * What has to be done so that a collection has its tables. `remake`: they have another key and no rows. Throws JobError if they have rows by
 * another key.
 */
export function* planTables({ name, key }: ConfiguredCollection): Rule<'nothing' | 'make' | 'remake'> {
  const known = yield* knownKey(name)
  if (!known) return 'make'
  if (JSON.stringify(known) === JSON.stringify(key)) return 'nothing'
  if (!(yield* isWithoutRows(name))) assertSameKey(name, known, key)
  return 'remake'
}

/** Notes a collection's key, which cannot change while it has rows, and makes its tables. Throws JobError for names that are taken. */
export function* makeTables(dialect: Dialect, collection: ConfiguredCollection): Rule<void> {
  const { name, key } = collection
  yield* assertNamesFree(dialect, name)
  yield* run('INSERT INTO sync_collections (name, key) VALUES (:name, :key)', {
    name,
    key: JSON.stringify(key),
  })
  yield* exec(tablesSql(dialect, shapeOf(name, yield* loadCatalog(dialect, collection))))
}

/** Drops the tables of a collection after its views, and deletes its columns and its key. */
export function* dropTables(collection: string): Rule<void> {
  yield* exec(TABLE_KINDS.map((kind) => `DROP TABLE IF EXISTS ${quoted(tableName(collection, kind))}`))
  yield* run('DELETE FROM sync_known_columns WHERE collection = :collection', { collection })
  yield* run('DELETE FROM sync_collections WHERE name = :collection', { collection })
}

/** The same for tables that are remade: open walks know their items by the other key, so they cannot be resumed. */
export function* dropForOtherKey(collection: string): Rule<void> {
  yield* dropTables(collection)
  yield* run(
    "UPDATE sync_walks SET status = 'abandoned', finished_at = updated_at WHERE collection = :collection AND status = 'open'",
    { collection },
  )
}

function* assertNamesFree(dialect: Dialect, name: string): Rule<void> {
  const { longestCollection } = dialect
  if (Buffer.byteLength(name) > longestCollection)
    throw new JobError(
      'CONFIGURATION',
      `the name ${name} is too long for tables of PostgreSQL: give the collection a name of at most ${longestCollection} bytes, and put the address of the list into its path`,
    )
  const found = yield* dialect.relationNamed(namesOfTables(dialect, name))
  if (!found) return
  throw new JobError(
    'CONFIGURATION',
    `the mirror cannot make the tables of ${name}, since it has a ${found.kind} ${found.name} already: give the collection ` +
      'another name (and the address as its path), or rename what is in the way',
  )
}
