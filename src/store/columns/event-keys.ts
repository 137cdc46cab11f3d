import { columnName, foldName, SQLITE_LIMITS } from './column.ts'

/** The first column of `orders_changes`. */
export const SEQ = 'seq'

/** The columns of `orders_changes` behind the key. */
export const EVENT_COLUMNS = ['change', 'at', 'changed_fields', 'before', 'after'] as const

/**
 * The names of the key columns in `orders_changes`: a key that has the name of a column of an event gets the next free one
 * (`at_2`), so that a query on events means the same in every mirror.
 */
export function eventKeyNames(keyColumns: readonly string[], limits = SQLITE_LIMITS): string[] {
  const taken = new Set<string>([SEQ, ...EVENT_COLUMNS])
  const own = new Set(keyColumns.map(foldName))
  return keyColumns.map((key) => {
    const name = taken.has(foldName(key))
      ? columnName([key], (one) => taken.has(foldName(one)) || own.has(foldName(one)), limits)
      : key
    taken.add(foldName(name))
    return name
  })
}
