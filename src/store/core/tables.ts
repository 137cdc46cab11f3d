import { type Column, columnType } from '../columns/column.ts'
import { all, type Dialect, one, type Rule } from './sql.ts'

// `sync_collections` and `sync_known_columns`: what the tables of a collection are like.

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
