import { parseExact } from '../../json/exact.ts'
import { asJsonObject } from '../../json/value.ts'
import { type Catalog, type TableShape, tableName } from '../columns/catalog.ts'
import { type Column, type ColumnChange, parseSqlitePath } from '../columns/column.ts'
import { type ArrayValue, toRow } from '../columns/row.ts'
import type { RowWriter } from './rows.ts'
import { all, type Dialect, quoted, type Rule } from './sql.ts'

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
  const rows = yield* all<{ number: number; text: string }>(`
    SELECT t."_row" AS number, j."_json" AS text
    FROM ${quoted(shape.name)} AS t
    ${dialect.join} ${quoted(tableName(shape.name, 'json'))} AS j ON j."_row" = t."_row"
    WHERE ${numbered.map(({ name }) => `t.${quoted(name)} IS NOT NULL`).join(' OR ')}
  `)
  const filled = rows.flatMap(({ number, text }) => {
    const typed = toRow(catalog, asJsonObject(parseExact(text)))
    return typed ? [{ number: BigInt(number), typed: dialect.stored(catalog, typed) }] : []
  })
  for (let from = 0; from < filled.length; from += BATCH_ROWS)
    yield* writer.rewrite(filled.slice(from, from + BATCH_ROWS))
  return filled.flatMap(({ typed }) => typed.arrays)
}

/** The columns of the fields of such objects. */
function numberedFields(columns: readonly Column[], { path }: Column): Column[] {
  const depth = parseSqlitePath(path).length
  return columns.filter(
    (column) => column.path.startsWith(`${path}.`) && /^\d+$/.test(parseSqlitePath(column.path)[depth] ?? ''),
  )
}
