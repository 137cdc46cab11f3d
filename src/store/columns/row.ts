import type { JsonObject, JsonValue } from '../../json/value.ts'
import type { Catalog, Slot } from './catalog.ts'
import type { SqlValue } from './column.ts'
import type { Leaf } from './flatten.ts'
import { needOf } from './need.ts'
import { everyLeaf } from './path-tree.ts'
import { asText, fittingValue, type OwnValue, ownValue } from './sql-value.ts'

/** An array, and the TEXT column that holds it. */
export interface ArrayValue {
  column: string
  array: JsonValue[]
}

/** What the typed table holds of an item. */
export interface TypedRow {
  /** By column name, keys not among them. A column that is not named is NULL in this row. */
  values: Map<string, SqlValue>
  /** The arrays among them, in their order. */
  arrays: ArrayValue[]
}

/** The row of the typed table for an item; null where the catalog has to be extended first. */
export function toRow(catalog: Catalog, item: JsonObject): TypedRow | null {
  const row: TypedRow = { values: new Map(), arrays: [] }
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

function put({ values, arrays }: TypedRow, { main, text }: Slot, value: Leaf, own: OwnValue): void {
  if (!main) return
  const fitting = fittingValue(main.type, value, own)
  const column = fitting === undefined ? text : main
  if (!column) return
  values.set(column.name, fitting ?? asText(value))
  if (Array.isArray(value)) arrays.push({ column: column.name, array: value })
}
