import type { JsonObject } from '../../json/exact.ts'
import type { Catalog, Slot } from './catalog.ts'
import type { ColumnChange, ColumnWarning, SqlValue } from './column.ts'
import { evolve } from './evolve.ts'
import type { Leaf } from './flatten.ts'
import { needOf } from './need.ts'
import { everyLeaf } from './path-tree.ts'
import { asText, fittingValue, type OwnValue, ownValue } from './sql-value.ts'

export interface Placement {
  /** The catalog for the next item: the same object where nothing changed. */
  catalog: Catalog
  /** By column name, keys not among them. A column that is not named is NULL in this row. */
  values: Map<string, SqlValue>
  /** What has to be done to the table before the row is written, in this order. */
  changes: readonly ColumnChange[]
  warnings: readonly ColumnWarning[]
}

const NONE: readonly never[] = []

/** The row of the typed table for an item, and the columns that have to be made for it first. The rules are those of "Columns" in the interface. */
export function placeItem(catalog: Catalog, item: JsonObject): Placement {
  const values = rowOf(catalog, item)
  if (values) return { catalog, values, changes: NONE, warnings: NONE }
  const evolution = evolve(catalog, item)
  const evolved = rowOf(evolution.catalog, item)
  if (!evolved) throw new Error('the item does not fit the columns that were made for it')
  return { ...evolution, values: evolved }
}

/** The row, or null if the columns have to change first. */
function rowOf(catalog: Catalog, item: JsonObject): Map<string, SqlValue> | null {
  const values = new Map<string, SqlValue>()
  const isPlaced = everyLeaf(catalog.root, item, (slot, value) => {
    const own = ownValue(value)
    const need = needOf(slot, value, own)
    if (need === 'none') {
      if (slot) put(values, slot, value, own)
      return true
    }
    const isLeftOut = (need === 'add' || need === 'text') && catalog.isFull && catalog.isFullReported
    return isLeftOut
  })
  return isPlaced ? values : null
}

function put(values: Map<string, SqlValue>, slot: Slot, value: Leaf, own: OwnValue): void {
  if (!slot.main) return
  const fitting = fittingValue(slot.main.type, value, own)
  if (fitting !== undefined) values.set(slot.main.name, fitting)
  else if (slot.text) values.set(slot.text.name, asText(value))
}
