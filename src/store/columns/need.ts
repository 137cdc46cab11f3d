import type { Slot } from './catalog.ts'
import type { Leaf } from './flatten.ts'
import { fittingValue, isWide, type OwnValue } from './sql-value.ts'

/**
 * What has to happen to the columns before the value can be stored: a first column, INTEGER to REAL for a fraction, a note
 * that an INTEGER column can no longer become REAL, a __text column; or nothing.
 */
export type Need = 'none' | 'add' | 'widen' | 'wide' | 'text'

export function needOf(slot: Slot | undefined, value: Leaf, own: OwnValue): Need {
  if (slot?.isKey) return 'none'
  if (!slot?.main) return 'add'
  if (slot.main.type === 'INTEGER' && !slot.main.wide) {
    if (typeof own === 'number') return 'widen'
    if (isWide(own)) return 'wide'
  }
  return slot.text || fittingValue(slot.main.type, value, own) !== undefined ? 'none' : 'text'
}
