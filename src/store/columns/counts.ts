import type { JsonObject } from '../../json/value.ts'
import { isJsonObject } from '../../json/value.ts'
import { type Column, type ColumnLimits, type ColumnType, type Leaf, parseSqlitePath } from './column.ts'
import { fittingValue, ownValue } from './row.ts'

// How many live rows of a job, or elements in a view of its arrays, hold a value in each column, and how many one that does not fit it:
// counted at the end of a full walk.

/** A line of `sync_column_counts`. `T`: how the store writes a time. */
export interface ColumnCount<T> {
  column: string
  /** Live rows or elements with a value in it. For a column of a view that cannot have misfits: 1 if there are any, else 0. */
  filled: number
  /** Those whose value is in the column NAME__text beside it. */
  misfits: number
  /** Those with an object in place of a value; its fields have columns of their own. */
  objects: number
  /** What one of the misfits is; null: there is none. */
  misfit: Misfit | null
  /** Start of the last full walk that found a value; null where this one did, or none ever has. */
  lastFilledAt: T | null
  /** 1: an earlier walk found a value, and since then there is none though the list has rows. */
  emptied: 0 | 1
}

/** The class of a value in NAME__text. `fitting`: it came before its column could hold it, and a `rebuild` would move it there. */
export type Misfit = 'text' | 'boolean' | 'list' | 'object' | 'fraction' | 'large' | 'fitting'

/** A column, the one beside it for what does not fit, and those of the fields of objects that came in its place. */
interface Counted {
  main: Column
  text: Column | undefined
  fields: readonly Column[]
}

/** What a statement of `countingSql` returned, by name. */
export type CountedRow = Readonly<Record<string, unknown>>

/** What is counted of each column, and a row that holds a misfit, as the table identifies rows. */
export type Found<R> = Pick<ColumnCount<never>, 'column' | 'filled' | 'misfits' | 'objects'> & {
  main: Column
  misfitRow: R | null
}

type Quoted = (name: string) => string

/** The SELECT list that counts the rows of a table, and the values in each column. `rowId`: what identifies a row of it; null: nothing. */
export function countingSql(
  columns: readonly Column[],
  { quoted, rowId }: { quoted: Quoted; rowId: string | null },
): string {
  const counts = countedOf(columns).flatMap((counted, index) => {
    const { main, text, fields } = counted
    const objects =
      fields.length === 0
        ? []
        : [`count(CASE WHEN ${isObjectSql(counted, quoted)} THEN 1 END) AS objects_${index}`]
    // PHP writes an object without fields as an empty list: if all other values are objects, these are no misfits.
    if (fields.length > 0 && main.type === 'TEXT')
      objects.push(`count(CASE WHEN ${quoted(main.name)} = '[]' THEN 1 END) AS empty_${index}`)
    const isMisfit = isMisfitSql(counted, quoted)
    return [
      `count(${quoted(main.name)}) AS filled_${index}`,
      ...(text ? [`count(${quoted(text.name)}) AS misfits_${index}`] : []),
      ...objects,
      ...(isMisfit !== null && rowId !== null
        ? [`min(CASE WHEN ${isMisfit} THEN ${rowId} END) AS misfit_row_${index}`]
        : []),
    ]
  })
  return ['count(*) AS rows', ...counts].join(', ')
}

/** A condition for the rows that hold a misfit of a column. */
export function misfitSql(columns: readonly Column[], main: Column, quoted: Quoted): string {
  const counted = countedOf(columns).find((one) => one.main === main)
  return (counted && isMisfitSql(counted, quoted)) ?? 'false'
}

function isMisfitSql(counted: Counted, quoted: Quoted): string | null {
  const { text, fields } = counted
  const conditions = [
    ...(text ? [`${quoted(text.name)} IS NOT NULL`] : []),
    ...(fields.length > 0 ? [isObjectSql(counted, quoted)] : []),
  ]
  return conditions.length === 0 ? null : conditions.join(' OR ')
}

function isObjectSql({ main, text, fields }: Counted, quoted: Quoted): string {
  const none = [main, ...(text ? [text] : [])].map(({ name }) => `${quoted(name)} IS NULL`)
  const some = fields.map(({ name }) => `${quoted(name)} IS NOT NULL`)
  return `(${none.join(' AND ')} AND (${some.join(' OR ')}))`
}

export function foundIn<R>(columns: readonly Column[], row: CountedRow): Found<R>[] {
  return countedOf(columns).map(({ main }, index) => {
    const count = (name: string) => Number(row[`${name}_${index}`] ?? 0)
    const [filled, texts] = [count('filled'), count('misfits')]
    // Without any other value the column is simply empty, and that is reported instead.
    const isAlone = filled - count('empty') + texts === 0
    return {
      column: main.name,
      main,
      filled,
      misfits: texts,
      objects: isAlone ? 0 : count('objects'),
      misfitRow: (row[`misfit_row_${index}`] ?? null) as R | null,
    }
  })
}

/** The columns of a view that can have misfits. For the others only one value is looked for: counting all would take much longer. */
export function withMisfits(columns: readonly Column[]): Column[] {
  const chosen = countedOf(columns).filter(({ text, fields }) => text || fields.length > 0)
  const needed = new Set(
    chosen.flatMap(({ main, text, fields }) => [main, ...(text ? [text] : []), ...fields]),
  )
  return columns.filter((column) => needed.has(column))
}

/** The columns NAME__text are counted, too, each on its own. */
function countedOf(columns: readonly Column[]): Counted[] {
  const texts = new Map(columns.filter(({ role }) => role === 'text').map((column) => [column.path, column]))
  return columns.map((main) => {
    if (main.role !== 'value') return { main, text: undefined, fields: [] }
    const fields = columns.filter(({ path }) => path.startsWith(`${main.path}.`))
    return { main, text: texts.get(main.path), fields }
  })
}

/**
 * The lines to store after a count. `before`: the lines of the last count, and its walk's start. A column in which the job never had a value
 * has no line.
 */
export function nextCounts<T>(
  found: readonly (Found<unknown> & Pick<ColumnCount<T>, 'misfit'>)[],
  rows: number,
  before: { counts: readonly ColumnCount<T>[]; asOf: T | null },
): ColumnCount<T>[] {
  const known = new Map(before.counts.map((count) => [count.column, count]))
  return found.flatMap(({ column, main, filled, misfits, objects, misfit }) => {
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
        objects,
        misfit: misfits + objects > 0 ? misfit : null,
        lastFilledAt: filled > 0 ? null : lastFilledAt,
        emptied: isEmptied ? 1 : 0,
      },
    ]
  })
}

/** The class of the value that an item has at the column's path and that is not in the column; null if it has none there. */
export function misfitIn(
  item: JsonObject,
  { path, type }: Pick<Column, 'path' | 'type'>,
  asRead: ColumnLimits['asRead'] = (value) => value,
): Misfit | null {
  let value: unknown = item
  for (const name of parseSqlitePath(path)) {
    if (!isJsonObject(value as JsonObject)) return null
    value = (value as JsonObject)[name] ?? null
  }
  if (value === null) return null
  return isJsonObject(value as JsonObject) ? 'object' : misfitOf(type, asRead(value as Leaf))
}

function misfitOf(type: ColumnType, value: Leaf): Misfit {
  const own = ownValue(value)
  if (fittingValue(type, value, own) !== undefined) return 'fitting'
  if (typeof value === 'string') return 'text'
  if (typeof value === 'boolean') return 'boolean'
  if (Array.isArray(value)) return 'list'
  return typeof own === 'number' ? 'fraction' : 'large'
}
