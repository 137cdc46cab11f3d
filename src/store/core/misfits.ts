import type { TableShape } from '../columns/catalog.ts'
import { all, type Dialect, one, quoted, type Rule } from './sql.ts'

// Values that did not fit their columns: NAME__text.

/** A column NAME__text with values, for `status`. */
export interface MisfitColumn {
  collection: string
  column: string
  /** Live rows with a value in it. */
  rows: number
}

/** The columns NAME__text that have values. */
export function* misfitColumns(): Rule<MisfitColumn[]> {
  const known = yield* all<Omit<MisfitColumn, 'rows'>>(
    `SELECT collection, "column" FROM sync_known_columns WHERE role = 'text' ORDER BY collection, "column"`,
  )
  const found: MisfitColumn[] = []
  for (const [collection, columns] of Map.groupBy(known, (column) => column.collection)) {
    const names = columns.map(({ column }) => column)
    const counts = yield* one<Record<string, number>>(`
      SELECT ${names.map((name, index) => `count(${quoted(name)}) AS c${index}`).join(', ')}
      FROM ${quoted(collection)}
      WHERE ${isMisfit(names)}
    `)
    const rows = names.map((_, index) => counts?.[`c${index}`] ?? 0)
    found.push(...columns.flatMap((column, index) => (rows[index] ? [{ ...column, rows: rows[index] }] : [])))
  }
  return found
}

/** In the order of their names, so that the condition is that of the index. */
function isMisfit(names: readonly string[]): string {
  return names
    .toSorted()
    .map((name) => `${quoted(name)} IS NOT NULL`)
    .join(' OR ')
}

/** What an index is called that finds the rows with misfits: nearly always none of millions. */
export const MISFITS_INDEX = '_misfits'

/** Makes the index of misfits anew, for all columns NAME__text of a collection. */
export function misfitsIndexSql(
  { limits }: Pick<Dialect, 'limits'>,
  { name, columns }: TableShape,
): string[] {
  const names = columns.filter(({ role }) => role === 'text').map((column) => column.name)
  if (names.length === 0) return []
  const index = quoted(limits.cut(name, MISFITS_INDEX.length) + MISFITS_INDEX)
  return [
    `DROP INDEX IF EXISTS ${index}`,
    `CREATE INDEX ${index} ON ${quoted(name)} ("_organization_id") WHERE ${isMisfit(names)}`,
  ]
}
