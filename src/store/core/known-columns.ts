import { type Catalog, createCatalog } from '../columns/catalog.ts'
import type { Column } from '../columns/column.ts'
import { all, type Dialect, type Rule } from './sql.ts'

// `sync_known_columns`: the columns of a collection's tables, and of the views of its arrays.

/** What is known of the columns of a collection. */
export interface KnownColumns {
  catalog: Catalog
  /**
   * The views of arrays of objects (`orders__items`), each by the column of the array: the fields of the elements. What does not fit their types is
   * null in the view.
   */
  views: ReadonlyMap<string, Catalog>
}

type Row = Omit<Column, 'wide'> & { wide: number; view: string; arrayColumn: string }

export function* loadColumns({ limits }: Dialect, collection: string): Rule<KnownColumns> {
  const rows = yield* all<Row>(
    `
      SELECT view, array_column AS "arrayColumn", "column" AS name, path, type, role, wide
      FROM sync_known_columns
      WHERE collection = :collection
      ORDER BY id
    `,
    { collection },
  )
  const byArray = Map.groupBy(rows, (row) => row.arrayColumn)
  const views = new Map<string, Catalog>()
  for (const [arrayColumn, fields] of byArray)
    if (arrayColumn !== '')
      views.set(arrayColumn, createCatalog(fields.map(columnOf), limits, fields[0]?.view))
  const columns = (byArray.get('') ?? []).map(columnOf)
  return { catalog: createCatalog(columns, limits, collection), views }
}

function columnOf({ name, path, type, role, wide }: Row): Column {
  return { name, path, type, role, wide: wide === 1 }
}

const SAVED = { name: 'text', path: 'text', type: 'text', role: 'text', wide: 'bigint' }

/** Notes columns that are new or have another type. `view`, `arrayColumn`: empty for those of the tables. `at`: ISO 8601. */
export function* saveColumns(
  dialect: Dialect,
  of: Record<'collection' | 'view' | 'arrayColumn' | 'at', string>,
  columns: readonly Column[],
): Rule<void> {
  const line = dialect.lines(SAVED)
  const given = Object.keys(SAVED).map(line.value)
  yield* line.run(
    `
      INSERT INTO sync_known_columns ("column", path, type, role, wide, collection, view, array_column, first_seen_at)
      ${line.rows([...given, ':collection::text', ':view::text', ':arrayColumn::text', ':at::timestamptz'])}
      ON CONFLICT (collection, view, "column") DO UPDATE SET type = excluded.type, wide = excluded.wide
    `,
    columns.map(({ name, path, type, role, wide }) => [name, path, type, role, wide ? 1 : 0]),
    of,
  )
}
