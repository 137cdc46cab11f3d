import { type Column, columnType } from '../columns/column.ts'
import type { ArrayView } from '../columns/elements.ts'
import { all, type Dialect, one, type Rule } from './sql.ts'

// `sync_collections`, `sync_known_columns` and `sync_view_columns`: what the tables and views of a collection are like.

/** The dotted paths of a collection's key; null if the mirror does not know the collection. */
export function* knownKey(collection: string): Rule<string[] | null> {
  const row = yield* one<{ key: string }>('SELECT key FROM sync_collections WHERE name = :collection', {
    collection,
  })
  return row && (JSON.parse(row.key) as string[])
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
 * The views of a collection. Earlier versions gave two arrays whose names PostgreSQL cuts alike one view: it is that of the first one.
 * No collection's name has two underscores, so a view belongs to one.
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
    const elements = [first, ...others.filter((one) => one.arrayColumn === arrayColumn)].map(
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
