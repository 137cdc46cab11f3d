import { integerIn, type JsonObject } from '../../json/value.ts'
import type { KeyPart } from '../../sync/items.ts'
import type { Notice } from '../../sync/types.ts'
import {
  type Column,
  type ColumnLimits,
  columnName,
  foldName,
  freeName,
  freeNames,
  type Leaf,
  parseSqlitePath,
  SQLITE_LIMITS,
  sqlitePath,
} from './column.ts'
import { changeFor, everyLeaf, isWide, ownValue, typeOf } from './row.ts'

// Which columns the items of a collection have, or the elements of an array, and which more they need.

/** What is known about a path, in a tree in the shape of the items, so that the path of a field is never put together. */
export interface PathNode {
  isKey: boolean
  /** Its columns. */
  main: Column | undefined
  text: Column | undefined
  children: Map<string, PathNode>
}

/** The columns of a collection, or of the view of an array. It never changes: `extendCatalog` returns another one. */
export interface Catalog {
  /** Of the collection, or the view. */
  readonly name: string
  /** The columns of the key, in the order of its fields; none of a view. */
  readonly keys: readonly Column[]
  /** All others, the oldest first. */
  readonly values: readonly Column[]
  readonly limits: ColumnLimits
  /** How many columns can still be discovered. */
  readonly room: number
  readonly root: PathNode
}

/** The columns of a new collection's key. Their names are chosen first, so they never depend on the items. @param key The dotted paths of its fields. */
export function keyColumns(key: readonly string[], limits = SQLITE_LIMITS): Column[] {
  const paths = key.map((path) => path.split('.'))
  const wanted = paths.map((path) => columnName(path, () => false, limits))
  const names = freeNames(wanted, limits.reservedForKeys, limits)
  return paths.map((path, index) => {
    const column = { name: names[index] ?? '', path: sqlitePath(path), wide: false }
    return { ...column, type: 'INTEGER', role: 'key' }
  })
}

/** The names of the columns that tell the rows of a collection apart. */
export function identityOf(keys: readonly Column[]): string[] {
  return ['_organization_id', ...keys.map(({ name }) => name)]
}

/** The parts of some items' keys. */
type Keys = readonly (readonly KeyPart[])[]

/** The columns of a key after these: INTEGER as long as every value was a JSON integer, then TEXT for good. */
function keysAfter(columns: readonly Column[], keys: Keys): Column[] {
  return columns.map((column, index) =>
    column.type === 'TEXT' || keys.every((key) => key[index]?.integer) ? column : { ...column, type: 'TEXT' },
  )
}

/** Whether the columns of the key hold these as they are. */
export function fitsKeys({ keys: columns }: Catalog, keys: Keys): boolean {
  return keysAfter(columns, keys).every((column, index) => column === columns[index])
}

/** The values of a key as its columns hold them; null if an INTEGER column cannot hold one exactly: `007` is not 7. */
export function keyValues(
  key: readonly Pick<KeyPart, 'text'>[],
  columns: readonly Pick<Column, 'type'>[],
): (string | bigint)[] | null {
  const values = key.map(({ text }, index) => (columns[index]?.type === 'TEXT' ? text : integerIn(text)))
  return values.every((value) => value !== null) ? values : null
}

/** @param columns As they were stored. */
export function createCatalog(columns: readonly Column[], limits = SQLITE_LIMITS, name = ''): Catalog {
  const root = newNode()
  for (const column of columns) {
    const node = nodeAt(root, parseSqlitePath(column.path))
    if (column.role === 'key') node.isKey = true
    if (column.role === 'value') node.main = column
    if (column.role === 'text') node.text = column
  }
  const keys = columns.filter(({ role }) => role === 'key')
  const values = columns.filter(({ role }) => role !== 'key')
  return { name, keys, values, limits, room: limits.mostColumns - columns.length, root }
}

function newNode(): PathNode {
  return { isKey: false, main: undefined, text: undefined, children: new Map() }
}

/** The node of a path; adds it if it is missing. */
function nodeAt(root: PathNode, path: readonly string[]): PathNode {
  let node = root
  for (const name of path) {
    const next = node.children.get(name) ?? newNode()
    node.children.set(name, next)
    node = next
  }
  return node
}

export interface Extension {
  catalog: Catalog
  /** Its columns that are new, in the order in which they came, or differ from the former ones. */
  changed: Column[]
  notices: Notice[]
}

/**
 * Returns the catalog that can hold all these keys and items, and how it differs from this one. It reads all items before any column is made, so
 * that 20 and 19.99 on one page give one REAL column.
 */
export function extendCatalog(before: Catalog, keys: Keys, items: readonly JsonObject[]): Extension {
  const { limits } = before
  const columns = [...keysAfter(before.keys, keys), ...before.values]
  const { root } = createCatalog(columns, limits)
  const names = new Set([...limits.reserved, ...columns.map(({ name }) => name)].map(foldName))
  const isTaken = (name: string) => names.has(foldName(name))
  const notices: Notice[] = []
  let isChanged = false

  function add(column: Column): Column {
    columns.push(column)
    names.add(foldName(column.name))
    isChanged = true
    return column
  }

  /** No path is spelled out for what is left out: that may be millions of fields. */
  function adapt(node: PathNode | undefined, value: Leaf, field: string, above: readonly string[]): true {
    const own = ownValue(value)
    const change = changeFor(node, value, own, before.keys.length > 0)
    const main = node?.main
    if (main && (change === 'widen' || change === 'wide')) {
      node.main = { ...main, ...(change === 'wide' ? { wide: true } : { type: 'REAL' }) }
      columns[columns.indexOf(main)] = node.main
      isChanged = true
    } else if (change === 'none' || columns.length >= limits.mostColumns) return true
    else if (main) {
      const name = freeName(main.name, isTaken, limits, '__text')
      node.text = add({ name, path: main.path, type: 'TEXT', role: 'text', wide: false })
      const message = `column ${main.name} is ${main.type}, and a value came that does not fit that type: such values are stored as text in column ${name}`
      notices.push({ message })
    } else {
      const path = [...above, field]
      const name = columnName(path, isTaken, limits)
      const column = { name, path: sqlitePath(path), type: typeOf(own), wide: isWide(own) }
      nodeAt(root, path).main = add({ ...column, role: 'value' })
    }
    return true
  }

  // Again after a change: a boolean that an INTEGER column could hold does not fit a REAL one.
  do {
    isChanged = false
    for (const item of items) everyLeaf(root, item, adapt, [])
  } while (isChanged)
  const known = new Set([...before.keys, ...before.values])
  const changed = columns.filter((column) => !known.has(column))
  return { catalog: createCatalog(columns, limits, before.name), changed, notices }
}

// Names of tables and views, which a database keeps in one namespace with its indexes.

/** The tables of a collection: what analysts query; the same items as JSON, row for row; superseded versions. */
export const TABLE_KINDS = ['typed', 'json', 'history'] as const

export type TableKind = (typeof TABLE_KINDS)[number]

/** The views of a collection, beside those of its arrays. */
export const VIEW_KINDS = ['raw', 'versions', 'changes'] as const

export type ViewKind = (typeof VIEW_KINDS)[number]

/** The name of a table or view. */
export function tableName(collection: string, kind: TableKind | ViewKind): string {
  return kind === 'typed' ? collection : `${collection}_${kind}`
}

/** Whether a table or view of the collection that is for people would have this name, whatever the mirror holds. */
export function belongsTo(collection: string, name: string): boolean {
  const own = (['typed', 'history', ...VIEW_KINDS] as const).map((kind) => tableName(collection, kind))
  // No collection's name has two underscores.
  const arrays = `${collection}__`
  return own.includes(name) || (name.startsWith(arrays) && name.length > arrays.length)
}
