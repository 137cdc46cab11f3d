import { columnType } from '../../columns/column.ts'
import type { ElementColumn } from '../../columns/elements.ts'
import { one, type Rule } from '../../core/sql.ts'
import type { Sql } from '../sql.ts'

/** The tables of a collection are as they are known as long as this says so; null without tables. */
export function* versionOf(name: string): Rule<number | null> {
  const row = yield* one<{ version: number }>('SELECT version FROM sync_collections WHERE name = :name', {
    name,
  })
  return row?.version ?? null
}

/** The view of an array of objects: `orders__items`. */
export interface ArrayView {
  name: string
  arrayColumn: string
  elements: readonly ElementColumn[]
}

/**
 * The views of a collection, by the column of their array. Earlier versions gave two arrays whose names are cut alike one view: it is
 * that of the first one.
 */
export async function loadViews(sql: Pick<Sql, 'rows'>, collection: string): Promise<Map<string, ArrayView>> {
  const rows = await sql.rows<ElementColumn & { view: string; array_column: string }>(
    `
      SELECT view, array_column, "column" AS name, path, type, holds
      FROM sync_view_columns
      WHERE starts_with(view, $1)
      ORDER BY sequence
    `,
    [`${collection}__`],
  )
  const views = new Map<string, ArrayView>()
  const owners = new Map<string, string>()
  for (const { view, array_column: arrayColumn, ...element } of rows) {
    if (!owners.has(view)) owners.set(view, arrayColumn)
    if (owners.get(view) !== arrayColumn) continue
    const known = views.get(arrayColumn)
    views.set(arrayColumn, {
      name: view,
      arrayColumn,
      elements: [...(known?.elements ?? []), { ...element, type: columnType(element.type) }],
    })
  }
  return views
}

export async function saveView(sql: Sql, { name, arrayColumn, elements }: ArrayView): Promise<void> {
  const list = <K extends keyof ElementColumn>(field: K) => elements.map((element) => element[field])
  await sql.rows(
    `
      INSERT INTO sync_view_columns (view, array_column, "column", path, type, holds)
      SELECT $1, $2, name, path, type, holds
      FROM unnest($3::text[], $4::text[], $5::text[], $6::text[]) AS new (name, path, type, holds)
      ON CONFLICT (view, "column") DO UPDATE
      SET array_column = excluded.array_column, path = excluded.path, type = excluded.type, holds = excluded.holds
    `,
    [name, arrayColumn, list('name'), list('path'), list('type'), list('holds')],
  )
}
