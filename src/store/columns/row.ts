import {
  canonicalNumber,
  isJsonObject,
  type JsonObject,
  type JsonValue,
  numberText,
  parseDecimal,
  type RawNumber,
} from '../../json/value.ts'
import type { Notice } from '../../sync/types.ts'
import { printable } from '../../text.ts'
import type { Catalog, PathNode } from './catalog.ts'
import type { ColumnType, Leaf, SqlValue } from './column.ts'

/** An array, and the TEXT column that holds it. */
export interface ArrayValue {
  column: string
  array: JsonValue[]
}

/** What the typed table holds of an item. */
export interface TypedRow {
  /** By column name, without the keys. All other columns are NULL in this row. */
  values: Map<string, SqlValue>
  /** The arrays among them, in their order. */
  arrays: ArrayValue[]
}

/**
 * How the columns of a path have to change before they can hold a value: a first column, INTEGER to REAL for a fraction, a mark on the column that holds
 * it (see `Column.wide`), a __text column; or not at all. `hasMisfits`: of a table; in the view of an array, what does not fit is null.
 */
export function changeFor(
  node: PathNode | undefined,
  value: Leaf,
  own: OwnValue,
  hasMisfits: boolean,
): 'none' | 'add' | 'widen' | 'wide' | 'text' {
  if (node?.isKey) return 'none'
  if (!node?.main) return 'add'
  const fitting = fittingValue(node.main.type, value, own)
  if (node.main.type === 'INTEGER' && !node.main.wide) {
    if (typeof own === 'number') return 'widen'
    if (hasMisfits && isWide(fitting)) return 'wide'
  }
  return fitting !== undefined || node.text || !hasMisfits ? 'none' : 'text'
}

/** The row of the typed table for an item; null if the catalog has to be extended first. */
export function toRow(catalog: Catalog, item: JsonObject): TypedRow | null {
  const row: TypedRow = { values: new Map(), arrays: [] }
  const fits = everyLeaf(catalog.root, item, (node, value) => {
    const own = ownValue(value)
    const isPlaced = isInPlace(catalog, node, value, own)
    if (isPlaced && node) put(row, node, value, own)
    return isPlaced
  })
  return fits ? row : null
}

/** Whether the objects in an array have all the columns that they need. */
export function fitsElements(catalog: Catalog, array: readonly JsonValue[]): boolean {
  return array.every(
    (element) =>
      !isJsonObject(element) ||
      everyLeaf(catalog.root, element, (node, value) => isInPlace(catalog, node, value, ownValue(value))),
  )
}

/** Whether a value needs no change of the catalog: it has its column, or there is no room for one. */
function isInPlace(catalog: Catalog, node: PathNode | undefined, value: Leaf, own: OwnValue): boolean {
  const change = changeFor(node, value, own, catalog.keys.length > 0)
  return change === 'none' || (catalog.room <= 0 && (change === 'add' || change === 'text'))
}

/** How many fields a warning names. */
const MOST_FIELDS = 3

/** The warning of what items that were placed have no column for: there is no room for a new one. */
export function leftOut(catalog: Catalog, items: readonly JsonObject[]): Notice[] {
  const { name: table, limits, room, keys, root } = catalog
  if (room > 0) return []
  const fields = new Set<string>()
  for (const item of items)
    everyLeaf(
      root,
      item,
      (node, value, name, above) => {
        if (changeFor(node, value, ownValue(value), keys.length > 0) !== 'none')
          fields.add(printable([...above, name].join('.'), 60))
        return fields.size < MOST_FIELDS
      },
      [],
    )
  if (fields.size === 0) return []
  const message = `${table} has ${limits.mostColumns} columns, the most there can be, so other fields, and values that do not fit their column, stay in _json only, for example ${[...fields].join(', ')}`
  return [{ message }]
}

const AT_THE_TOP: readonly string[] = []

/**
 * Visits the leaves of an item until one returns false; returns whether none did. The hot loop of a page's commit: without `above`, which has the
 * names from the item down to the parent, it allocates nothing.
 */
export function everyLeaf(
  node: PathNode | undefined,
  item: JsonObject,
  visit: (node: PathNode | undefined, value: Leaf, name: string, above: readonly string[]) => boolean,
  above: readonly string[] | null = null,
): boolean {
  for (const name of Object.keys(item)) {
    const value = item[name]
    if (value === null || value === undefined) continue
    const child = node?.children.get(name)
    const goesOn = isJsonObject(value)
      ? everyLeaf(child, value, visit, above && [...above, name])
      : visit(child, value, name, above ?? AT_THE_TOP)
    if (!goesOn) return false
  }
  return true
}

function put({ values, arrays }: TypedRow, { main, text }: PathNode, value: Leaf, own: OwnValue): void {
  if (!main) return
  const fitting = fittingValue(main.type, value, own)
  const column = fitting === undefined ? text : main
  if (!column) return
  values.set(column.name, fitting ?? asText(value))
  if (Array.isArray(value)) arrays.push({ column: column.name, array: value })
}

/** A value in its own storage class: bigint is INTEGER, number is REAL, string is TEXT. */
export type OwnValue = bigint | number | string

const INTEGER_DIGITS = 19n

/**
 * The value as a column of its own class stores it. Whole numbers are INTEGER however they are written (20,
 * 20.0, 2e1), fractions REAL; beyond 64 bits, or where a double turns into infinity or zero, numbers are
 * TEXT.
 */
export function ownValue(value: Leaf): OwnValue {
  if (typeof value === 'string') return value
  if (typeof value === 'boolean') return value ? 1n : 0n
  return Array.isArray(value) ? JSON.stringify(value) : ownNumber(value)
}

function ownNumber(number: number | RawNumber): OwnValue {
  if (Number.isSafeInteger(number)) return BigInt(Number(number))
  if (typeof number === 'number' && !Number.isInteger(number)) return number
  // From 2^53 on a double may have lost digits: only the text is right.
  return numberFromText(numberText(number))
}

function numberFromText(text: string): OwnValue {
  const { negative, digits, exponent } = parseDecimal(text)
  if (exponent < 0n) {
    const double = Number(text)
    return double === 0 || !Number.isFinite(double) ? text : double
  }
  if (BigInt(digits.length) + exponent > INTEGER_DIGITS) return text
  const whole = BigInt((negative ? '-' : '') + (digits || '0') + '0'.repeat(Number(exponent)))
  return BigInt.asIntN(64, whole) === whole ? whole : text
}

/** The type that a column takes from its first value. */
export function typeOf(own: OwnValue): ColumnType {
  if (typeof own === 'bigint') return 'INTEGER'
  return typeof own === 'number' ? 'REAL' : 'TEXT'
}

/** Whether a double would round the integer. */
export function isWide(own: SqlValue | undefined): boolean {
  return typeof own === 'bigint' && BigInt(Number(own)) !== own
}

/** What a column of this type stores for the value; undefined if the value does not fit. */
function fittingValue(type: ColumnType, value: Leaf, own: OwnValue): OwnValue | undefined {
  if (type === 'TEXT') {
    if (typeof value === 'boolean') return undefined
    return typeof own === 'string' ? own : asText(value)
  }
  const number = typeof value === 'string' ? numberInText(type, value) : own
  if (type === 'INTEGER') return typeof number === 'bigint' ? number : undefined
  if (typeof value === 'boolean') return undefined
  if (typeof number === 'bigint') return isWide(number) ? undefined : Number(number)
  return typeof number === 'number' ? number : undefined
}

/** A number as people write it. Only a REAL column takes fractions. */
const WRITTEN = { INTEGER: /^-?(?:0|[1-9]\d*)$/, REAL: /^-?(?:0|[1-9]\d*)(?:\.\d+)?$/ }

/** A double has at most 17 digits of its own, behind at most 324 zeros. A longer text may have a megabyte. */
const LONGEST_WRITTEN = 400

/**
 * The number that a text writes out: when an API begins to send its numbers as texts, SUM() must not lose them. Undefined for any other
 * text, and for digits that the column would lose.
 */
function numberInText(type: 'INTEGER' | 'REAL', text: string): OwnValue | undefined {
  if (text.length > LONGEST_WRITTEN || !WRITTEN[type].test(text)) return undefined
  const number = numberFromText(text)
  const isLost = typeof number === 'number' && canonicalNumber(String(number)) !== canonicalNumber(text)
  return isLost ? undefined : number
}

/** The value as text: `true`, `false`, numbers as they were written, arrays as JSON. */
function asText(value: Leaf): string {
  if (typeof value === 'string') return value
  if (typeof value === 'boolean') return String(value)
  return Array.isArray(value) ? JSON.stringify(value) : numberText(value)
}
