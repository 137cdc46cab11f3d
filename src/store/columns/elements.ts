import { isJsonObject, type JsonValue } from '../../json/value.ts'
import { type Catalog, createCatalog } from './catalog.ts'
import { type Column, type ColumnLimits, foldName, freeName, type Leaf, SQLITE_LIMITS } from './column.ts'
import { extendCatalog } from './extend.ts'
import { holdsItem, WRITTEN } from './row.ts'

// The columns of the view of an array of objects follow the rules of those of a table. Their paths are within the element.

/** The view of an array of objects: `orders__items`. */
export interface ArrayView {
  name: string
  arrayColumn: string
  elements: readonly Column[]
  /** The array's path in the item, where its column holds texts that read like lists, too; null: what reads like a list is one. */
  sentAt: string | null
}

/** `ArrayView.sentAt` by the column of the array. */
export function sentAtOf({ wide, path }: Pick<Column, 'wide' | 'path'>): string | null {
  return wide ? path : null
}

/** The columns that a view needs. */
export interface ExtendedElements {
  elements: readonly Column[]
  warnings: string[]
}

/** The columns of the view after this array; null if they can hold all of it as they are. */
export function extendElements(
  known: readonly Column[],
  array: readonly JsonValue[],
  limits = SQLITE_LIMITS,
): ExtendedElements | null {
  const objects = array.filter(isJsonObject)
  if (objects.length === 0) return null
  const catalog = catalogOf(known, limits)
  if (objects.every((object) => holdsItem(catalog, object))) return null
  // Columns that are left out are reported only once, while the view is not full yet.
  const isTold = known.length >= limits.mostColumns
  const extension = extendCatalog({ ...catalog, isFullReported: isTold }, [], objects)
  return { elements: extension.catalog.columns, warnings: extension.warnings }
}

// A list of columns never changes, so its catalog lives as long as the list.
const catalogs = new WeakMap<readonly Column[], Catalog>()

function catalogOf(known: readonly Column[], limits: ColumnLimits): Catalog {
  const catalog = catalogs.get(known) ?? createCatalog(known, [], true, { ...limits, reserved: [], asRead })
  catalogs.set(known, catalog)
  return catalog
}

/** How many digits of any decimal number a double keeps. */
const EXACT_DIGITS = 15

const LONGEST_FRACTION = 100

/** A value that only a TEXT column can hold. */
const TOO_LONG = JSON.rawJSON('1e400')

/**
 * What a value is to the SQL of a view, which has the same rules in either database: a number with a point or an exponent is a double
 * there, so a long one is exact only as text; a text is a fraction if a double surely keeps its digits.
 */
export function asRead(value: Leaf): Leaf {
  if (typeof value === 'boolean' || Array.isArray(value)) return value
  // Lists within lists have no view, so a text that begins like a list needs no mark.
  if (typeof value === 'string') return isLossy(value) || value.trimStart().startsWith('[') ? '' : value
  // One that JavaScript writes like this is exact, or has so many digits that only a TEXT column takes it anyway.
  if (typeof value === 'number') return value
  const text = value.rawJSON
  return /[.eE]/.test(text) && !(Math.abs(Number(text)) <= Number.MAX_SAFE_INTEGER) ? TOO_LONG : value
}

function isLossy(text: string): boolean {
  if (text.length <= EXACT_DIGITS || !text.includes('.') || !WRITTEN.REAL.test(text)) return false
  const digits = text.replace(/0+$/, '').replace(/[-.]/g, '').replace(/^0+/, '')
  return text.length > LONGEST_FRACTION || digits.length > EXACT_DIGITS
}

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
