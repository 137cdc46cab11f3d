import type { ColumnLimits } from '../columns/column.ts'

// The names of a collection's tables, views and indexes, which both databases keep in one namespace.

/** The tables of a collection: what analysts query, the items as they were sent, superseded versions. */
export const TABLE_KINDS = ['typed', 'raw', 'history'] as const

export type TableKind = (typeof TABLE_KINDS)[number]

export function tableName(collection: string, kind: TableKind): string {
  return kind === 'typed' ? collection : `${collection}_${kind}`
}

const CHANGES_END = '_changes'

export function changesViewName(collection: string): string {
  return collection + CHANGES_END
}

/** The ends of the names of indexes beside the keys. */
export const INDEX_ENDS = [
  '_history_by_key',
  '_history_by_end',
  '_history_at_end',
  '_history_at_start',
  '_raw_at_start',
  '_raw_at_change',
  '_history_seq_at_end',
  '_history_seq_at_start',
  '_raw_seq_at_start',
  '_raw_seq_at_change',
] as const

export const NAME_ENDS: readonly string[] = ['_raw', '_history', ...INDEX_ENDS, CHANGES_END]

/** Their names; also those that users might have taken. */
export function namesOfTables({ limits }: { limits: ColumnLimits }, collection: string): string[] {
  return ['', ...NAME_ENDS].map((end) => limits.cut(collection, end.length) + end)
}

/** Whether the tables and views of a collection have such a name, whatever the mirror holds. */
export function belongsTo(collection: string, name: string): boolean {
  const own = [...TABLE_KINDS.map((kind) => tableName(collection, kind)), changesViewName(collection)]
  // No collection's name has two underscores.
  const arrays = `${collection}__`
  return own.includes(name) || (name.startsWith(arrays) && name.length > arrays.length)
}
