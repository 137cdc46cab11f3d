import { type Column, MOST_COLUMNS } from './column.ts'
import type { KeyType } from './key.ts'
import { columnName, foldName } from './name.ts'
import { parseSqlitePath, sqlitePath } from './path.ts'
import { createPathTree, nodeAt, type PathNode } from './path-tree.ts'

/** What is known about one path of the items. */
export interface Slot {
  isKey: boolean
  main: Column | undefined
  text: Column | undefined
}

/** The columns of one collection. A catalog is never changed: `extendCatalog` returns another one. */
export interface Catalog {
  readonly columns: readonly Column[]
  readonly keyPaths: readonly (readonly string[])[]
  /** No further column can be discovered. */
  readonly isFull: boolean
  /** Somebody was told already that fields are left out. */
  readonly isFullReported: boolean
  /** For `toRow`. */
  readonly root: PathNode<Slot>
}

/** A catalog while its next state is being worked out. */
export interface Draft {
  columns: Column[]
  keyPaths: readonly (readonly string[])[]
  root: PathNode<Slot>
  /** Folded names in use, those of the keys included. */
  names: Set<string>
  /** Columns that are there or will be, since a key's column waits for its first value. */
  count: number
}

/**
 * @param columns The discovered columns as they were stored. A key column whose type is not known yet may be missing: its
 *   name and its place among the 500 are kept for it.
 * @param keyPaths The fields of the collection's key, in their order.
 */
export function createCatalog(
  columns: readonly Column[],
  keyPaths: readonly (readonly string[])[],
  isFullReported = false,
): Catalog {
  return sealDraft(openDraft(columns, keyPaths), isFullReported)
}

/** The types of the key columns; null where no key has come yet. */
export function keyTypesOf({ columns, keyPaths }: Catalog): (KeyType | null)[] {
  return keyColumnNames(keyPaths).map((name) => {
    const column = columns.find((one) => one.role === 'key' && one.name === name)
    return column ? (column.type === 'INTEGER' ? 'INTEGER' : 'TEXT') : null
  })
}

/** The names of the key columns. They are chosen first, so they never depend on the items. */
export function keyColumnNames(keyPaths: readonly (readonly string[])[]): string[] {
  const names: string[] = []
  const isTaken = (name: string) => names.some((other) => foldName(other) === foldName(name))
  for (const path of keyPaths) names.push(columnName(path, isTaken))
  return names
}

/** Names that every table of SQLite has, and refuses to give to a further column: a field of that name gets the next one. */
const TAKEN = ['rowid', 'oid']

export function openDraft(columns: readonly Column[], keyPaths: readonly (readonly string[])[]): Draft {
  const root = createPathTree<Slot>()
  const taken = [...TAKEN, ...keyColumnNames(keyPaths), ...columns.map((column) => column.name)]
  const names = new Set(taken.map(foldName))
  for (const path of keyPaths) slotAt(root, path).isKey = true
  for (const column of columns) {
    const slot = slotAt(root, parseSqlitePath(column.path))
    if (column.role === 'value') slot.main = column
    if (column.role === 'text') slot.text = column
  }
  const decided = new Set(columns.filter((column) => column.role === 'key').map((column) => column.path))
  const undecided = keyPaths.filter((path) => !decided.has(sqlitePath(path))).length
  return { columns: [...columns], keyPaths, root, names, count: columns.length + undecided }
}

export function sealDraft(draft: Draft, isFullReported: boolean): Catalog {
  const { columns, keyPaths, root, count } = draft
  return { columns, keyPaths, root, isFull: count >= MOST_COLUMNS, isFullReported }
}

export function slotAt(root: PathNode<Slot>, path: readonly string[]): Slot {
  const node = nodeAt(root, path)
  node.at ??= { isKey: false, main: undefined, text: undefined }
  return node.at
}
