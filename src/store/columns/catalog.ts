import { JobError } from '../../errors.ts'
import type { KeyPart } from '../../sync/items.ts'
import {
  type Column,
  type ColumnLimits,
  columnName,
  foldName,
  parseSqlitePath,
  SQLITE_LIMITS,
  sqlitePath,
} from './column.ts'

/** The columns of one path of the items. */
export interface ColumnSlot {
  isKey: boolean
  main: Column | undefined
  text: Column | undefined
}

/** What is known about each path, as a tree in the shape of the items, so that the path of a field is never put together. */
export interface PathNode {
  slot: ColumnSlot | undefined
  children: Map<string, PathNode>
}

/** The columns of one collection. A catalog never changes: `extendCatalog` returns another one. */
export interface Catalog {
  readonly columns: readonly Column[]
  readonly keyPaths: KeyPaths
  /** Null before the first key. */
  readonly keyTypes: readonly (KeyType | null)[]
  readonly limits: ColumnLimits
  /** No further column can be discovered. */
  readonly isFull: boolean
  /** For `toRow`. */
  readonly root: PathNode
}

/** A catalog while its successor is worked out. */
export interface Draft extends Omit<Catalog, 'columns' | 'keyTypes' | 'isFull'> {
  columns: Column[]
  /** Folded names in use, those of the keys included. */
  names: Set<string>
  /** Columns, with those of keys that wait for their first value. */
  count: number
}

/** The fields of a collection's key in order, each as its names from the item down. */
export type KeyPaths = readonly (readonly string[])[]

export type KeyType = 'INTEGER' | 'TEXT'

/** @param key The dotted paths of its fields. */
export function splitKey(key: readonly string[]): string[][] {
  return key.map((path) => path.split('.'))
}

/** Throws JobError if the mirror keeps a collection by another key. Both keys as dotted paths. */
export function assertSameKey(name: string, known: readonly string[], wanted: readonly string[]): void {
  if (JSON.stringify(known) === JSON.stringify(wanted)) return
  throw new JobError(
    'CONFIGURATION',
    `the mirror keeps ${name} by the key ${known.join(', ')}, and the configuration says ${wanted.join(', ')}: configure the former ` +
      `key again; or, to read everything again by the new one, run "admin-mirror forget --org ORG --collection ${name} ` +
      '--yes" for every organization, and then sync',
  )
}

/** The names of the key columns. They are chosen first, so they never depend on the items. */
export function keyColumnNames(keyPaths: KeyPaths, limits = SQLITE_LIMITS): string[] {
  const names: string[] = []
  const isTaken = (name: string) =>
    [...names, ...limits.reservedForKeys].some((other) => foldName(other) === foldName(name))
  for (const path of keyPaths) names.push(columnName(path, isTaken, limits))
  return names
}

function keyTypesOf({ columns, keyPaths, limits }: Draft): (KeyType | null)[] {
  return keyColumnNames(keyPaths, limits).map((name) => {
    const column = columns.find((one) => one.role === 'key' && one.name === name)
    return column ? (column.type === 'INTEGER' ? 'INTEGER' : 'TEXT') : null
  })
}

/**
 * The types of the key columns after these values: INTEGER as long as every value was a JSON integer, then
 * TEXT for good.
 * @param current Null before the first value.
 */
export function keyColumnTypes(current: readonly (KeyType | null)[], parts: readonly KeyPart[]): KeyType[] {
  return parts.map((part, index) => (part.integer && current[index] !== 'TEXT' ? 'INTEGER' : 'TEXT'))
}

/** Whether key columns of these types hold the keys as they are. */
export function fitsKeys(types: readonly (KeyType | null)[], keys: readonly (readonly KeyPart[])[]): boolean {
  const wanted = keys.reduce<readonly (KeyType | null)[]>(keyColumnTypes, types)
  return wanted.every((type, index) => type === types[index])
}

/** The values of a key as columns of these types hold them; null if an INTEGER column cannot hold one exactly: `007` is not 7. */
export function keyValues(
  key: readonly Pick<KeyPart, 'text'>[],
  types: readonly KeyType[],
): (string | bigint)[] | null {
  const values = key.map(({ text }, index) => (types[index] === 'TEXT' ? text : integerIn(text)))
  return values.every((value) => value !== null) ? values : null
}

function integerIn(text: string): bigint | null {
  if (!/^-?\d{1,19}$/.test(text)) return null
  const number = BigInt(text)
  return String(number) === text && BigInt.asIntN(64, number) === number ? number : null
}

/** What the tables of a collection are made from. */
export interface TableShape {
  name: string
  keyColumns: readonly string[]
  keyTypes: readonly KeyType[]
  /** The discovered columns except the keys, the oldest first. */
  columns: readonly Column[]
}

/** A key column without a value yet is INTEGER: it can become TEXT at no cost. */
export function shapeOf(name: string, catalog: Catalog): TableShape {
  return {
    name,
    keyColumns: keyColumnNames(catalog.keyPaths, catalog.limits),
    keyTypes: catalog.keyTypes.map((type) => type ?? 'INTEGER'),
    columns: catalog.columns.filter(({ role }) => role !== 'key'),
  }
}

// Names of tables and views, which a database keeps in one namespace with its indexes.

/** The tables of a collection: what analysts query; the same items as JSON, row for row; superseded versions. */
export const TABLE_KINDS = ['typed', 'json', 'history'] as const

export type TableKind = (typeof TABLE_KINDS)[number]

export function tableName(collection: string, kind: TableKind): string {
  return kind === 'typed' ? collection : `${collection}_${kind}`
}

/** The views of a collection, beside those of its arrays. */
export const VIEW_KINDS = ['raw', 'versions', 'changes'] as const

export type ViewKind = (typeof VIEW_KINDS)[number]

export function viewName(collection: string, kind: ViewKind): string {
  return `${collection}_${kind}`
}

/** Whether a table or view of the collection that is for people would have this name, whatever the mirror holds. */
export function belongsTo(collection: string, name: string): boolean {
  const own = [
    collection,
    tableName(collection, 'history'),
    ...VIEW_KINDS.map((kind) => viewName(collection, kind)),
  ]
  // No collection's name has two underscores.
  const arrays = `${collection}__`
  return own.includes(name) || (name.startsWith(arrays) && name.length > arrays.length)
}

/**
 * @param columns The discovered columns as they were stored. A key column whose type is still unknown may be
 *   missing: its name and one of `mostColumns` are reserved for it.
 */
export function createCatalog(
  columns: readonly Column[],
  keyPaths: KeyPaths,
  limits = SQLITE_LIMITS,
): Catalog {
  return sealDraft(openDraft(columns, { keyPaths, limits }))
}

export function openDraft(
  columns: readonly Column[],
  { keyPaths, limits }: Pick<Catalog, 'keyPaths' | 'limits'>,
): Draft {
  const root = emptyNode()
  const discovered = columns.map((column) => column.name)
  const taken = [...limits.reserved, ...keyColumnNames(keyPaths, limits), ...discovered]
  const names = new Set(taken.map(foldName))
  for (const path of keyPaths) slotAt(root, path).isKey = true
  for (const column of columns) {
    const slot = slotAt(root, parseSqlitePath(column.path))
    if (column.role === 'value') slot.main = column
    if (column.role === 'text') slot.text = column
  }
  const decided = new Set(columns.filter((column) => column.role === 'key').map((column) => column.path))
  const undecided = keyPaths.filter((path) => !decided.has(sqlitePath(path))).length
  const count = columns.length + undecided
  return { columns: [...columns], keyPaths, limits, root, names, count }
}

export function sealDraft(draft: Draft): Catalog {
  const { names: _names, count, ...known } = draft
  return { ...known, keyTypes: keyTypesOf(draft), isFull: count >= known.limits.mostColumns }
}

/** The slot of a path; adds it if it is missing. */
export function slotAt(root: PathNode, path: readonly string[]): ColumnSlot {
  let node = root
  for (const name of path) {
    const next = node.children.get(name) ?? emptyNode()
    node.children.set(name, next)
    node = next
  }
  node.slot ??= { isKey: false, main: undefined, text: undefined }
  return node.slot
}

function emptyNode(): PathNode {
  return { slot: undefined, children: new Map() }
}
