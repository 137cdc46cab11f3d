// The names of a collection's tables and views, which a database keeps in one namespace with its indexes.

/** The tables of a collection: what analysts query, the items as they were sent, superseded versions. */
export const TABLE_KINDS = ['typed', 'raw', 'history'] as const

export type TableKind = (typeof TABLE_KINDS)[number]

export function tableName(collection: string, kind: TableKind): string {
  return kind === 'typed' ? collection : `${collection}_${kind}`
}

export function changesViewName(collection: string): string {
  return `${collection}_changes`
}

/** Whether a table or view of the collection would have this name, whatever the mirror holds. */
export function belongsTo(collection: string, name: string): boolean {
  const own = [...TABLE_KINDS.map((kind) => tableName(collection, kind)), changesViewName(collection)]
  // No collection's name has two underscores.
  const arrays = `${collection}__`
  return own.includes(name) || (name.startsWith(arrays) && name.length > arrays.length)
}
