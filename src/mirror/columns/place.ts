import type { JsonObject, JsonValue } from '../../json/exact.ts'
import type { Catalog, Slot } from './catalog.ts'
import type { ColumnChange, ColumnWarning, SqlValue } from './column.ts'
import { evolve } from './evolve.ts'
import type { Leaf } from './flatten.ts'
import { needOf } from './need.ts'
import { everyLeaf } from './path-tree.ts'
import { asText, fittingValue, type OwnValue, ownValue } from './sql-value.ts'

/** An array, and the TEXT column that holds it. */
export interface PlacedArray {
  column: string
  array: JsonValue[]
}

export interface Placement {
  /** The catalog for the next item: the same object where nothing changed. */
  catalog: Catalog
  /** By column name, keys not among them. A column that is not named is NULL in this row. */
  values: Map<string, SqlValue>
  /** The arrays among them, in their order. */
  arrays: readonly PlacedArray[]
  /** What has to be done to the table before the row is written, in this order. */
  changes: readonly ColumnChange[]
  warnings: readonly ColumnWarning[]
}

const NONE: readonly never[] = []

/** The row of the typed table for an item, and the columns that have to be made for it first. The rules are those of "Columns" in the interface. */
export function placeItem(catalog: Catalog, item: JsonObject): Placement {
  const row = rowOf(catalog, item)
  if (row) return { catalog, ...row, changes: NONE, warnings: NONE }
  const evolution = evolve(catalog, item)
  const evolved = rowOf(evolution.catalog, item)
  if (!evolved) throw new Error('the item does not fit the columns that were made for it')
  return { ...evolution, ...evolved }
}

type Row = Pick<Placement, 'values'> & { arrays: PlacedArray[] }

/** The row, or null if the columns have to change first. */
function rowOf(catalog: Catalog, item: JsonObject): Row | null {
  const row: Row = { values: new Map(), arrays: [] }
  const isPlaced = everyLeaf(catalog.root, item, (slot, value) => {
    const own = ownValue(value)
    const need = needOf(slot, value, own)
    if (need === 'none') {
      if (slot) put(row, slot, value, own)
      return true
    }
    const isLeftOut = (need === 'add' || need === 'text') && catalog.isFull && catalog.isFullReported
    return isLeftOut
  })
  return isPlaced ? row : null
}

function put({ values, arrays }: Row, { main, text }: Slot, value: Leaf, own: OwnValue): void {
  if (!main) return
  const fitting = fittingValue(main.type, value, own)
  const column = fitting === undefined ? text : main
  if (!column) return
  values.set(column.name, fitting ?? asText(value))
  if (Array.isArray(value)) arrays.push({ column: column.name, array: value })
}
