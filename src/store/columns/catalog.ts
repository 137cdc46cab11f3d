import { isJsonObject, type JsonObject } from '../../json/value.ts'
import type { KeyPart } from '../../sync/items.ts'
import type { Notice } from '../../sync/types.ts'
import {
  type Column,
  type ColumnChange,
  type ColumnLimits,
  columnName,
  foldName,
  freeName,
  type Leaf,
  parseSqlitePath,
  SQLITE_LIMITS,
  sqlitePath,
} from './column.ts'
import { changeFor, hasNumbersAsNames, isListWithHoles, isWide, ownValue, typeOf } from './row.ts'

// Which columns the items of a collection have, or the elements of an array, and which more they need.

/** The columns of one path. */
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

/** It never changes: `extendCatalog` returns another one. */
export interface Catalog {
  readonly columns: readonly Column[]
  /** Empty for the elements of an array. */
  readonly keyPaths: KeyPaths
  /** Null before the first key. */
  readonly keyTypes: readonly (KeyType | null)[]
  readonly limits: ColumnLimits
  /** No further column can be discovered. */
  readonly isFull: boolean
  readonly root: PathNode
}

/** The fields of a collection's key in order, each as its names from the item down. */
export type KeyPaths = readonly (readonly string[])[]

export type KeyType = 'INTEGER' | 'TEXT'

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

/** @param key The dotted paths of its fields. */
export function splitKey(key: readonly string[]): string[][] {
  return key.map((path) => path.split('.'))
}

/** The names of the key columns. They are chosen first, so they never depend on the items. */
export function keyColumnNames(keyPaths: KeyPaths, limits = SQLITE_LIMITS): string[] {
  const names: string[] = []
  const isTaken = (name: string) =>
    [...names, ...limits.reservedForKeys].some((other) => foldName(other) === foldName(name))
  for (const path of keyPaths) names.push(columnName(path, isTaken, limits))
  return names
}

/** The types of the key columns after these keys: INTEGER as long as every value was a JSON integer, then TEXT for good. */
function keyTypesAfter(
  current: readonly (KeyType | null)[],
  keys: readonly (readonly KeyPart[])[],
): (KeyType | null)[] {
  return current.map((type, index) =>
    keys.reduce<KeyType | null>(
      (known, key) => (key[index]?.integer && known !== 'TEXT' ? 'INTEGER' : 'TEXT'),
      type,
    ),
  )
}

/** Whether key columns of these types hold the keys as they are. */
export function fitsKeys(types: readonly (KeyType | null)[], keys: readonly (readonly KeyPart[])[]): boolean {
  return keyTypesAfter(types, keys).every((type, index) => type === types[index])
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

/** @param columns As they were stored. A key column whose type is still unknown may be missing: its name and its place are reserved for it. */
export function createCatalog(
  columns: readonly Column[],
  keyPaths: KeyPaths,
  limits = SQLITE_LIMITS,
): Catalog {
  return catalogOf(draftOf(columns, keyPaths, limits))
}

/** A catalog while it is worked out. */
interface Draft extends Pick<Catalog, 'keyPaths' | 'limits' | 'root'> {
  columns: Column[]
  /** Folded names in use, those of the keys included. */
  names: Set<string>
  /** How many columns can be added. */
  room: number
  isChanged: boolean
  warnings: string[]
}

function draftOf(columns: readonly Column[], keyPaths: KeyPaths, limits: ColumnLimits): Draft {
  const root = emptyNode()
  const taken = [
    ...limits.reserved,
    ...keyColumnNames(keyPaths, limits),
    ...columns.map((column) => column.name),
  ]
  for (const path of keyPaths) slotAt(root, path).isKey = true
  for (const column of columns) {
    const slot = slotAt(root, parseSqlitePath(column.path))
    if (column.role === 'value') slot.main = column
    if (column.role === 'text') slot.text = column
  }
  const names = new Set(taken.map(foldName))
  // Keys that wait for their first value have their places.
  const room = limits.mostColumns - keyPaths.length - columns.filter(({ role }) => role !== 'key').length
  return { columns: [...columns], keyPaths, limits, root, names, room, isChanged: false, warnings: [] }
}

function catalogOf({ columns, keyPaths, limits, root, room }: Draft): Catalog {
  const keys = columns.filter(({ role }) => role === 'key')
  const keyTypes = keyColumnNames(keyPaths, limits).map((name) => {
    const type = keys.find((column) => column.name === name)?.type
    return type ? (type === 'INTEGER' ? 'INTEGER' : 'TEXT') : null
  })
  return { columns, keyPaths, keyTypes, limits, isFull: room <= 0, root }
}

/** The slot of a path; adds it if it is missing. */
function slotAt(root: PathNode, path: readonly string[]): ColumnSlot {
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

export interface Extension {
  catalog: Catalog
  /** In the order in which they have to be made. */
  changes: ColumnChange[]
  notices: Notice[]
}

/**
 * Returns the catalog that can hold all these keys and items, and how it differs from this one. It reads all items before any column is made, so
 * that 20 and 19.99 on one page give one REAL column.
 */
export function extendCatalog(
  before: Catalog,
  keys: readonly (readonly KeyPart[])[],
  items: readonly JsonObject[],
): Extension {
  const draft = draftOf(withKeys(before, keys), before.keyPaths, before.limits)
  // First without what may be a list with holes: lists on the same page tell. Again after a change: a boolean that an INTEGER column could hold does
  // not fit a REAL one.
  for (let pass = 1; pass <= 2 || draft.isChanged; pass++) {
    draft.isChanged = false
    for (const item of items) extend(draft, draft.root, item, [], pass === 1)
  }
  const catalog = catalogOf(draft)
  const changes = changesBetween(before.columns, catalog.columns)
  const notices = draft.warnings.map((message): Notice => ({ level: 'warn', message }))
  if (catalog.isFull && !before.isFull)
    notices.push({
      level: 'warn',
      message: `${catalog.limits.mostColumns} discovered columns are the most there can be: all further new fields stay in _json only`,
    })
  for (const { kind, column } of changes)
    if (kind === 'type' && column.role !== 'key')
      notices.push({ level: 'info', message: `column ${column.name} holds fractions from now on (REAL)` })
  return { catalog, changes, notices }
}

/** The columns, with the types that these keys need. */
function withKeys(catalog: Catalog, keys: readonly (readonly KeyPart[])[]): readonly Column[] {
  if (keys.length === 0) return catalog.columns
  const types = keyTypesAfter(catalog.keyTypes, keys)
  const keyColumns = keyColumnNames(catalog.keyPaths, catalog.limits).map((name, index): Column => {
    const path = sqlitePath(catalog.keyPaths[index] ?? [])
    return { name, path, type: types[index] ?? 'TEXT', role: 'key', wide: false }
  })
  return [...keyColumns, ...catalog.columns.filter(({ role }) => role !== 'key')]
}

function changesBetween(before: readonly Column[], after: readonly Column[]): ColumnChange[] {
  const known = new Map(before.map((column) => [column.name, column]))
  return after.flatMap((column): ColumnChange[] => {
    const former = known.get(column.name)
    if (!former) return [{ kind: 'add', column }]
    if (former.type !== column.type) return [{ kind: 'type', column }]
    return former.wide === column.wide ? [] : [{ kind: 'wide', column }]
  })
}

function extend(
  draft: Draft,
  node: PathNode | undefined,
  item: JsonObject,
  above: readonly string[],
  isFirst: boolean,
): void {
  for (const name of Object.keys(item)) {
    const value = item[name]
    if (value === null || value === undefined) continue
    const child = node?.children.get(name)
    if (!isJsonObject(value)) adapt(draft, child?.slot, value, above, name)
    else if (isListWithHoles(value, child)) adapt(draft, child?.slot, Object.values(value), above, name)
    else if (!isFirst || !hasNumbersAsNames(value)) extend(draft, child, value, [...above, name], isFirst)
  }
}

/** No path is spelled out for what is left out: that may be millions of fields. */
function adapt(
  draft: Draft,
  slot: ColumnSlot | undefined,
  value: Leaf,
  above: readonly string[],
  name: string,
): void {
  const own = ownValue(value)
  const change = changeFor(slot, value, own, draft.keyPaths.length > 0)
  if (change === 'none') return
  if (slot?.main && (change === 'widen' || change === 'wide')) {
    const after: Column = { ...slot.main, ...(change === 'wide' ? { wide: true } : { type: 'REAL' }) }
    draft.columns[draft.columns.indexOf(slot.main)] = after
    slot.main = after
    draft.isChanged = true
  } else if (draft.room <= 0) return
  else if (slot && change === 'text') addText(draft, slot)
  else {
    const path = [...above, name]
    const free = columnName(path, isTakenIn(draft), draft.limits)
    const column: Column = {
      name: free,
      path: sqlitePath(path),
      type: typeOf(own),
      role: 'value',
      wide: isWide(own),
    }
    slotAt(draft.root, path).main = column
    add(draft, column)
  }
}

function addText(draft: Draft, slot: ColumnSlot): void {
  if (!slot.main) return
  const { name: main, type, path } = slot.main
  const name = freeName(main, isTakenIn(draft), draft.limits, '__text')
  slot.text = { name, path, type: 'TEXT', role: 'text', wide: false }
  add(draft, slot.text)
  draft.warnings.push(
    `column ${main} is ${type}, and a value came that does not fit that type: such values are stored as text in column ${name}`,
  )
}

function add(draft: Draft, column: Column): void {
  draft.columns.push(column)
  draft.names.add(foldName(column.name))
  draft.room--
  draft.isChanged = true
}

function isTakenIn({ names }: Draft): (name: string) => boolean {
  return (name) => names.has(foldName(name))
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
