import { type TableShape, tableName } from '../columns/catalog.ts'
import { quoted } from './sql.ts'

// `orders_versions`: every version with the discovered columns.

/** The SELECT of the view. New columns come last, since a server adds no others to a view that is read. */
export function selectVersions({ name, keyColumns, columns }: TableShape): string {
  const [live, history] = [quoted(name), quoted(tableName(name, 'history'))]
  const keys = ['_organization_id', ...keyColumns].map(quoted)
  const values = columns.map((column) => quoted(column.name))
  // The types of the columns of the first part are those of the view.
  return `SELECT ${[...keys, '"_valid_from"', '"_valid_to"', ...values].join(', ')}
FROM ${history}
UNION ALL
SELECT ${[...keys, '"_changed_at"', 'NULL', ...values].join(', ')}
FROM ${live}`
}
