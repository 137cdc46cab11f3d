import type { JsonObject, JsonValue } from '../../json/value.ts'
import type { Catalog, ColumnSlot } from './catalog.ts'
import type { SqlValue } from './column.ts'
import { everyLeaf, type Leaf } from './flatten.ts'
import { asText, fittingValue, isWide, type OwnValue, ownValue } from './sql-value.ts'

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
 * How a slot has to change before it can hold a value: a first column, INTEGER to REAL for a fraction, a mark
 * that an INTEGER column can no longer become REAL, a __text column; or not at all.
 */
export type SlotChange = 'none' | 'add' | 'widen' | 'wide' | 'text'

export function changeFor(slot: ColumnSlot | undefined, value: Leaf, own: OwnValue): SlotChange {
  if (slot?.isKey) return 'none'
  if (!slot?.main) return 'add'
  if (slot.main.type === 'INTEGER' && !slot.main.wide) {
    if (typeof own === 'number') return 'widen'
    if (isWide(own)) return 'wide'
  }
  return slot.text || fittingValue(slot.main.type, value, own) !== undefined ? 'none' : 'text'
}

/** The row of the typed table for an item; null if the catalog has to be extended first. */
export function toRow(catalog: Catalog, item: JsonObject): TypedRow | null {
  const row: TypedRow = { values: new Map(), arrays: [] }
  const fits = everyLeaf(catalog.root, item, (slot, value) => {
    const own = ownValue(value)
    const change = changeFor(slot, value, own)
    if (change === 'none') {
      if (slot) put(row, slot, value, own)
      return true
    }
    const isLeftOut = (change === 'add' || change === 'text') && catalog.isFull && catalog.isFullReported
    return isLeftOut
  })
  return fits ? row : null
}

function put({ values, arrays }: TypedRow, { main, text }: ColumnSlot, value: Leaf, own: OwnValue): void {
  if (!main) return
  const fitting = fittingValue(main.type, value, own)
  const column = fitting === undefined ? text : main
  if (!column) return
  values.set(column.name, fitting ?? asText(value))
  if (Array.isArray(value)) arrays.push({ column: column.name, array: value })
}
