import { parseExact } from '../../../src/json/exact.ts'
import { isJsonObject, type JsonObject } from '../../../src/json/value.ts'
import {
  type Catalog,
  createCatalog,
  type Extension,
  extendCatalog,
} from '../../../src/store/columns/catalog.ts'
import type { Leaf } from '../../../src/store/columns/column.ts'
import { type TypedRow, toRow } from '../../../src/store/columns/row.ts'

/** The item of a JSON text. */
export function item(text: string): JsonObject {
  const value = parseExact(text)
  if (!isJsonObject(value)) throw new Error(`not an object: ${text}`)
  return value
}

/** A page's rows, and the column changes that they needed. */
export type Placed = Extension & { rows: TypedRow[] }

/** The rows of a page of items. */
export function placePage(catalog: Catalog, items: readonly JsonObject[]): Placed {
  const known = items.map((one) => toRow(catalog, one))
  const fits = !known.includes(null)
  const extension = fits ? { catalog, changes: [], notices: [] } : extendCatalog(catalog, [], items)
  const rows = items.flatMap((one) => toRow(extension.catalog, one) ?? [])
  if (rows.length < items.length) throw new Error('an item does not fit the columns that were made for it')
  return { ...extension, rows }
}

/** A page of one item. */
export function placeItem(catalog: Catalog, one: JsonObject): Extension & TypedRow {
  const { rows, ...extension } = placePage(catalog, [one])
  return { ...extension, values: rows[0]?.values ?? new Map(), arrays: rows[0]?.arrays ?? [] }
}

/** Places items in turn, each in the catalog after the one before. */
export function placeAll(
  texts: readonly string[],
  start: Catalog = createCatalog([], [['id']]),
): (Extension & TypedRow)[] {
  let catalog = start
  return texts.map((text) => {
    const placement = placeItem(catalog, item(text))
    catalog = placement.catalog
    return placement
  })
}

/**
 * The fields of an item in their order, objects opened up: scalars, nulls and arrays. An empty object has
 * none.
 */
export function leavesOf(
  object: JsonObject,
  above: readonly string[] = [],
): [path: string[], value: Leaf | null][] {
  return Object.entries(object).flatMap(([name, value]) => {
    const path = [...above, name]
    return isJsonObject(value) ? leavesOf(value, path) : [[path, value] as [string[], Leaf | null]]
  })
}
