import { parseExact } from '../../json/exact.ts'
import { asJsonObject } from '../../json/value.ts'
import type { Catalog, TableShape } from '../columns/catalog.ts'
import { type Column, type ColumnChange, parseSqlitePath } from '../columns/column.ts'
import { type ArrayValue, toRow } from '../columns/row.ts'
import type { RowWriter, TypedLine } from './rows.ts'
import { all, type Dialect, joinRaw, quoted, type Rule } from './sql.ts'

/** Rows that one statement writes. */
const BATCH_ROWS = 1000

/**
 * PHP writes a list with holes as an object whose keys are numbers. Until a list comes, nobody can tell: the rows that have such an object get the
 * column of the list with it. Returns the lists of these rows.
 */
export function* fillLists(
  dialect: Dialect,
  { writer, catalog, shape }: { writer: RowWriter; catalog: Catalog; shape: TableShape },
  changes: readonly ColumnChange[],
): Rule<ArrayValue[]> {
  const numbered = changes.flatMap(({ kind, column }) =>
    kind === 'add' && column.type === 'TEXT' ? numberedFields(shape.columns, column) : [],
  )
  if (numbered.length === 0) return []
  const keys = shape.keyColumns.map((key, index) => `r.${quoted(key)} AS k${index}`)
  const rows = yield* all<Record<string, string | number>>(`
    SELECT r."_organization_id" AS organization, ${keys.join(', ')}, r."_json" AS text
    FROM ${quoted(shape.name)} AS t ${joinRaw(dialect, shape.name, shape.keyColumns)}
    WHERE ${numbered.map(({ name }) => `t.${quoted(name)} IS NOT NULL`).join(' OR ')}
  `)
  const lines = rows.flatMap(({ organization, text, ...row }): TypedLine[] => {
    const typed = toRow(catalog, asJsonObject(parseExact(String(text))))
    const key = shape.keyColumns.map((_, index) => ({ text: String(row[`k${index}`]), integer: false }))
    return typed ? [{ organization: String(organization), key, typed: dialect.stored(catalog, typed) }] : []
  })
  for (let from = 0; from < lines.length; from += BATCH_ROWS)
    yield* writer.writeTyped(lines.slice(from, from + BATCH_ROWS))
  return lines.flatMap(({ typed }) => typed.arrays)
}

/** The columns of the fields of such objects. */
function numberedFields(columns: readonly Column[], { path }: Column): Column[] {
  const depth = parseSqlitePath(path).length
  return columns.filter(
    (column) => column.path.startsWith(`${path}.`) && /^\d+$/.test(parseSqlitePath(column.path)[depth] ?? ''),
  )
}
