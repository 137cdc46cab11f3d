import { type Catalog, createCatalog, type KeyPaths } from '../../columns/catalog.ts'
import type { Column } from '../../columns/column.ts'
import type { ArrayView } from '../../columns/elements.ts'
import { loadArrayViews, loadColumns } from '../../core/tables.ts'
import { POSTGRES, runRule, type Statements } from '../driver.ts'
import { POSTGRES_LIMITS, type Sql } from '../sql.ts'

/** What is stored of a collection's key and columns. */
export interface CollectionRecord {
  /** The dotted paths of the key. */
  key: string[]
  version: number
}

export async function findCollection(sql: Pick<Sql, 'rows'>, name: string): Promise<CollectionRecord | null> {
  const [row] = await sql.rows<{ key: string; version: number }>(
    'SELECT key, version FROM sync_collections WHERE name = $1',
    [name],
  )
  return row ? { key: JSON.parse(row.key) as string[], version: row.version } : null
}

/** The discovered columns of a collection, the oldest first. */
export async function loadCatalog(
  sql: Statements,
  name: string,
  keyPaths: KeyPaths,
  isFullReported = false,
): Promise<Catalog> {
  const columns = await runRule(sql, loadColumns(POSTGRES, name))
  return createCatalog(columns, keyPaths, isFullReported, POSTGRES_LIMITS)
}

export async function saveColumns(
  sql: Sql,
  collection: string,
  columns: readonly Column[],
  at: string,
): Promise<void> {
  const list = <K extends keyof Column>(field: K) => columns.map((column) => column[field])
  await sql.rows(
    `
      INSERT INTO sync_known_columns (collection, "column", path, type, role, wide, first_seen_at, last_changed_at)
      SELECT $1, name, path, type, role, wide, $7, $7
      FROM unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[]) AS new (name, path, type, role, wide)
      ON CONFLICT (collection, "column") DO UPDATE
      SET
        last_changed_at = CASE WHEN sync_known_columns.type = excluded.type THEN sync_known_columns.last_changed_at ELSE excluded.last_changed_at END,
        type = excluded.type,
        wide = excluded.wide
    `,
    [
      collection,
      list('name'),
      list('path'),
      list('type'),
      list('role'),
      list('wide').map((wide) => (wide ? 1 : 0)),
      at,
    ],
  )
}

/** The views of a collection, by the column of their array. */
export async function loadViews(sql: Statements, collection: string): Promise<Map<string, ArrayView>> {
  const views = await runRule(sql, loadArrayViews(POSTGRES, collection))
  return new Map(views.map((view) => [view.arrayColumn, view]))
}

export async function saveView(
  sql: Sql,
  { name, arrayColumn, elements }: ArrayView,
  at: string,
): Promise<void> {
  const list = <K extends keyof Column>(field: K) => elements.map((element) => element[field])
  await sql.rows(
    `
      INSERT INTO sync_view_columns (view, array_column, "column", path, type, role, wide, first_seen_at, last_changed_at)
      SELECT $1, $2, name, path, type, role, wide, $8, $8
      FROM unnest($3::text[], $4::text[], $5::text[], $6::text[], $7::bigint[]) AS new (name, path, type, role, wide)
      ON CONFLICT (view, "column") DO UPDATE
      SET
        array_column = excluded.array_column,
        path = excluded.path,
        last_changed_at = CASE WHEN sync_view_columns.type = excluded.type THEN sync_view_columns.last_changed_at ELSE excluded.last_changed_at END,
        type = excluded.type,
        wide = excluded.wide
    `,
    [
      name,
      arrayColumn,
      list('name'),
      list('path'),
      list('type'),
      list('role'),
      list('wide').map((wide) => (wide ? 1 : 0)),
      at,
    ],
  )
}
