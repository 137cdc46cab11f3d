import type { JsonObject } from '../../json/value.ts'
import { isJsonObject } from '../../json/value.ts'
import type { Column, ColumnType } from './column.ts'
import type { Leaf } from './flatten.ts'
import { parseSqlitePath } from './path.ts'
import { fittingValue, ownValue } from './row.ts'

// How many live rows of a job hold a value in each column, and how many one that does not fit it: counted at the end of a full
// walk, in one reading of the typed table.

/** A line of `sync_column_counts`. `T`: how the store writes a time. */
export interface ColumnCount<T> {
  column: string
  /** Live rows with a value in it. */
  filled: number
  /** Live rows whose value is in the column NAME__text beside it. */
  misfits: number
  /** What one of the misfits is; null: there is none. */
  misfit: Misfit | null
  /** Start of the last full walk that found a value; null where this one did, or none ever has. */
  lastFilledAt: T | null
  /** 1: an earlier walk found a value, and since then there is none though the list has rows. */
  emptied: 0 | 1
}

/** The class of a value in NAME__text. `fitting`: was stored before its column could hold it, as `rebuild` has it do. */
export type Misfit = 'text' | 'boolean' | 'list' | 'fraction' | 'large' | 'fitting'

/** A column, and the one beside it for what does not fit. */
interface Counted {
  main: Column
  text: Column | undefined
}

/** What a statement of `countingSql` returned, by name. */
export type CountedRow = Readonly<Record<string, unknown>>

/** What is counted of each column, and a row that holds a misfit, as the table identifies rows. */
export type Found<R> = Pick<ColumnCount<never>, 'column' | 'filled' | 'misfits'> & {
  main: Column
  misfitRow: R | null
}

/** The SELECT list that counts the rows of a table, and the values in each column. `rowId`: what identifies a row of it. */
export function countingSql(
  columns: readonly Column[],
  { quoted, rowId }: { quoted: (name: string) => string; rowId: string },
): string {
  const counts = pairs(columns).flatMap(({ main, text }, index) => [
    `count(${quoted(main.name)}) AS filled_${index}`,
    ...(text
      ? [
          `count(${quoted(text.name)}) AS misfits_${index}`,
          `min(CASE WHEN ${quoted(text.name)} IS NOT NULL THEN ${rowId} END) AS misfit_row_${index}`,
        ]
      : []),
  ])
  return ['count(*) AS rows', ...counts].join(', ')
}

export function foundIn<R>(columns: readonly Column[], row: CountedRow): Found<R>[] {
  return pairs(columns).map(({ main }, index) => ({
    column: main.name,
    main,
    filled: Number(row[`filled_${index}`] ?? 0),
    misfits: Number(row[`misfits_${index}`] ?? 0),
    misfitRow: (row[`misfit_row_${index}`] ?? null) as R | null,
  }))
}

/** The columns NAME__text are counted, too, each on its own. */
function pairs(columns: readonly Column[]): Counted[] {
  const texts = new Map(columns.filter(({ role }) => role === 'text').map((column) => [column.path, column]))
  return columns.map((main) => ({ main, text: main.role === 'value' ? texts.get(main.path) : undefined }))
}

/**
 * The lines after a count. `before`: the lines of the count before, and of which walk; a column that the job never had a value
 * in has none.
 */
export function nextCounts<T>(
  found: readonly (Found<unknown> & Pick<ColumnCount<T>, 'misfit'>)[],
  rows: number,
  before: { counts: readonly ColumnCount<T>[]; asOf: T | null },
): ColumnCount<T>[] {
  const known = new Map(before.counts.map((count) => [count.column, count]))
  return found.flatMap(({ column, main, filled, misfits, misfit }) => {
    const former = known.get(column)
    const isEmpty = filled + misfits === 0
    if (isEmpty && !former) return []
    const wasFilled = former !== undefined && former.filled + former.misfits > 0
    const isEmptied = isEmpty && rows > 0 && main.role === 'value' && (wasFilled || former?.emptied === 1)
    const lastFilledAt = former && former.filled > 0 ? before.asOf : (former?.lastFilledAt ?? null)
    return [
      {
        column,
        filled,
        misfits,
        misfit: misfits > 0 ? misfit : null,
        lastFilledAt: filled > 0 ? null : lastFilledAt,
        emptied: isEmptied ? 1 : 0,
      },
    ]
  })
}

/** What the value of an item is that is not in its column; null if it has none there. */
export function misfitIn(item: JsonObject, { path, type }: Pick<Column, 'path' | 'type'>): Misfit | null {
  let value: unknown = item
  for (const name of parseSqlitePath(path)) {
    if (!isJsonObject(value as JsonObject)) return null
    value = (value as JsonObject)[name] ?? null
  }
  return value === null || isJsonObject(value as JsonObject) ? null : misfitOf(type, value as Leaf)
}

function misfitOf(type: ColumnType, value: Leaf): Misfit {
  const own = ownValue(value)
  if (fittingValue(type, value, own) !== undefined) return 'fitting'
  if (typeof value === 'string') return 'text'
  if (typeof value === 'boolean') return 'boolean'
  if (Array.isArray(value)) return 'list'
  return typeof own === 'number' ? 'fraction' : 'large'
}
