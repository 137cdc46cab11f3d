import { type Catalog, createCatalog, shapeOf, splitKey } from '../columns/catalog.ts'
import { type Column, columnType } from '../columns/column.ts'
import type { ArrayView, ElementColumn } from '../columns/elements.ts'
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
export function* knownKey(collection: string, lock = ''): Rule<string[] | null> {
  const sql = `SELECT key FROM sync_collections WHERE name = :collection ${lock}`
  const row = yield* one<{ key: string }>(sql, { collection })
  return row && (JSON.parse(row.key) as string[])
}

/** Whether a collection has tables, by this key. */
export function* hasTables({ name, key }: ConfiguredCollection): Rule<boolean> {
  return JSON.stringify(yield* knownKey(name)) === JSON.stringify(key)
}

/** The key columns of a collection as they are until the transaction ends: one may become TEXT. Null without tables. */
export function* knownKeys(dialect: Dialect, collection: string): Rule<Keys | null> {
  const key = yield* knownKey(collection, dialect.lock('keep'))
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

/** The views of a collection. No collection's name has two underscores, so a view belongs to one collection. */
export function* loadArrayViews({ sequence }: Dialect, collection: string): Rule<ArrayView[]> {
  type Row = Omit<ElementColumn, 'type'> & { view: string; arrayColumn: string; type: string }
  const rows = yield* all<Row>(
    `
      SELECT view, array_column AS "arrayColumn", "column" AS name, path, type
      FROM sync_view_columns
      WHERE ${OF_VIEWS}
      ORDER BY ${sequence}
    `,
    { collection },
  )
  return [...Map.groupBy(rows, ({ view }) => view)].map(([name, elements]) => ({
    name,
    arrayColumn: elements[0]?.arrayColumn ?? '',
    elements: elements.map((element) => ({
      name: element.name,
      path: element.path,
      type: columnType(element.type),
    })),
  }))
}

/** A condition on `view`: it is of this collection. */
export const OF_VIEWS = `substr(view, 1, length(:collection::text) + 2) = :collection::text || '__'`

export function* loadCatalog(dialect: Dialect, { name, key }: ConfiguredCollection): Rule<Catalog> {
  return createCatalog(yield* loadColumns(dialect, name), splitKey(key), dialect.limits)
}

const SAVED_COLUMNS = { name: 'text', path: 'text', type: 'text', role: 'text', wide: 'bigint' }

/** Notes columns of a collection that are added, or changed. `at`: ISO 8601. */
export function* saveColumns(
  dialect: Dialect,
  collection: string,
  columns: readonly Column[],
  at: string,
): Rule<void> {
  const line = dialect.lines(SAVED_COLUMNS)
  yield* dialect.eachLine(
    `
      INSERT INTO sync_known_columns ("column", path, type, role, wide, collection, first_seen_at)
      ${line.rows([...Object.keys(SAVED_COLUMNS).map(line.value), ':collection::text', ':at::timestamptz'])}
      ON CONFLICT (collection, "column") DO UPDATE SET type = excluded.type, wide = excluded.wide
    `,
    SAVED_COLUMNS,
    columns.map(({ name, path, type, role, wide }) => [name, path, type, role, wide ? 1 : 0]),
    { collection, at },
  )
}

const SAVED_ELEMENTS = { name: 'text', path: 'text', type: 'text' }

/** Notes the columns of a view. */
export function* saveView(dialect: Dialect, { name: view, arrayColumn, elements }: ArrayView): Rule<void> {
  const line = dialect.lines(SAVED_ELEMENTS)
  yield* dialect.eachLine(
    `
      INSERT INTO sync_view_columns ("column", path, type, view, array_column)
      ${line.rows([...Object.keys(SAVED_ELEMENTS).map(line.value), ':view::text', ':arrayColumn::text'])}
      ON CONFLICT (view, "column") DO UPDATE SET type = excluded.type
    `,
    SAVED_ELEMENTS,
    elements.map(({ name, path, type }) => [name, path, type]),
    { view, arrayColumn },
  )
}
