import type { ColumnType } from '../columns/column.ts'
import { all, exec, quoted, type Rule } from '../core/sql.ts'

interface DeclaredColumn {
  name: string
  type: string
  notnull: number
  dflt_value: string | null
  pk: number
}

/**
 * Copies a table into one with other types of columns that replaces it (https://sqlite.org/lang_altertable.html#otheralter), and makes its indexes
 * and triggers again. It happens some five times in the life of a mirror. A connection that writes has foreign keys off, so that DROP TABLE fires
 * no CASCADE of a user, and `legacy_alter_table` on, so that RENAME does not fail while a view names the dropped table.
 */
export function* rebuildTable(table: string, types: ReadonlyMap<string, ColumnType>): Rule<void> {
  const copy = `_new_${table}`
  // NOCASE: an index or a trigger names its table as the user typed it.
  const belongings = yield* all<{ sql: string }>(
    `
      SELECT sql
      FROM sqlite_schema
      WHERE type IN ('index', 'trigger') AND tbl_name = :table COLLATE NOCASE AND sql IS NOT NULL
      ORDER BY _rowid_
    `,
    { table },
  )
  const columns = yield* all<DeclaredColumn>(
    'SELECT name, type, "notnull", dflt_value, pk FROM pragma_table_info(:table)',
    { table },
  )
  const names = columns.map(({ name }) => quoted(name)).join(', ')
  const values = columns.map(({ name }) =>
    types.has(name) ? `CAST(${quoted(name)} AS ${types.get(name)})` : quoted(name),
  )
  yield* exec([
    `CREATE TABLE ${quoted(copy)} (\n  ${columns.map((column) => declaration(column, types)).join(',\n  ')}\n)`,
    `INSERT INTO ${quoted(copy)} (${names}) SELECT ${values.join(', ')} FROM ${quoted(table)} ORDER BY _rowid_`,
    `DROP TABLE ${quoted(table)}`,
    `ALTER TABLE ${quoted(copy)} RENAME TO ${quoted(table)}`,
    ...belongings.map(({ sql }) => sql),
  ])
}

function declaration(column: DeclaredColumn, types: ReadonlyMap<string, ColumnType>): string {
  const { name, type, notnull, dflt_value: value, pk } = column
  return [
    quoted(name),
    types.get(name) ?? type,
    ...(pk > 0 ? ['PRIMARY KEY'] : []),
    ...(notnull === 1 ? ['NOT NULL'] : []),
    ...(value === null ? [] : [`DEFAULT (${value})`]),
  ].join(' ')
}
