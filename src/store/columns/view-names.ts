import { type ColumnLimits, foldName, freeName } from './column.ts'

/** The name of the view of an array: `orders__items`; numbered where one of `taken` is called so, since both were cut alike. */
export function arrayViewName(
  collection: string,
  column: string,
  taken: Iterable<string>,
  limits: ColumnLimits,
): string {
  const names = new Set([...taken].map(foldName))
  return freeName(`${collection}__${column}`, (name) => names.has(foldName(name)), limits)
}

/** The names of the key columns in the view of an array: `_parent_id`. */
export function parentNames(keyColumns: readonly string[], limits: ColumnLimits): string[] {
  const names = new Set<string>()
  return keyColumns.map((key) => {
    const name = freeName(`_parent_${key}`, (candidate) => names.has(foldName(candidate)), limits)
    names.add(foldName(name))
    return name
  })
}
