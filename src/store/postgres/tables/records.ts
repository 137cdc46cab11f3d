import type { Column } from '../../columns/column.ts'
import type { ArrayView } from '../../columns/elements.ts'
import { one, type Rule } from '../../core/sql.ts'
import { loadArrayViews } from '../../core/tables.ts'
import { POSTGRES, runRule, type Statements } from '../driver.ts'
import type { Sql } from '../sql.ts'

/** The tables of a collection are as they are known as long as this says so; null without tables. */
export function* versionOf(name: string): Rule<number | null> {
  const row = yield* one<{ version: number }>('SELECT version FROM sync_collections WHERE name = :name', {
    name,
  })
  return row?.version ?? null
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
