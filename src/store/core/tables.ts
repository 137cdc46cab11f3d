import { type Catalog, createCatalog, shapeOf, splitKey } from '../columns/catalog.ts'
import { type Column, columnType } from '../columns/column.ts'
import type { ArrayView } from '../columns/elements.ts'
import { all, type Dialect, type Keys, one, type Rule } from './sql.ts'

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

type StoredColumn = Omit<Column, 'wide'> & { wide: number }

function columnOf({ name, path, type, role, wide }: StoredColumn): Column {
  return { name, path, type: columnType(type), role, wide: wide === 1 }
}

/** The discovered columns of a collection, the oldest first. */
export function* loadColumns({ sequence }: Dialect, collection: string): Rule<Column[]> {
  const rows = yield* all<StoredColumn>(
    `
      SELECT "column" AS name, path, type, role, wide
      FROM sync_known_columns
      WHERE collection = :collection
      ORDER BY ${sequence}
    `,
    { collection },
  )
  return rows.map(columnOf)
}

/**
 * The views of a collection. Earlier versions made one view for two arrays whose names are the same once PostgreSQL has cut them: it is that of
 * the first one. No collection's name has two underscores, so a view belongs to one collection.
 */
export function* loadArrayViews({ sequence }: Dialect, collection: string): Rule<ArrayView[]> {
  type Row = StoredColumn & { view: string; arrayColumn: string; sentAt: string | null }
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
    const elements = [first, ...others.filter((other) => other.arrayColumn === arrayColumn)].map(columnOf)
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
