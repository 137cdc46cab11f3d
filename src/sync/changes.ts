import { differingFields, sameJson } from '../json/compare.ts'
import { parseExact } from '../json/exact.ts'
import { asJsonObject } from '../json/value.ts'
import type { ListedItem, StoredItem } from './items.ts'
import type { Upsert } from './store.ts'

/**
 * Returns the items of a page to write: new ones, and those with another value.
 * @param stored One entry for each item.
 * @param ignore Dotted paths whose changes do not count.
 */
export function changedItems(
  items: readonly ListedItem[],
  stored: readonly StoredItem[],
  ignore: ReadonlySet<string>,
): Upsert[] {
  return items.flatMap((listed, index): Upsert[] => {
    const known = stored[index]
    if (!('key' in listed) || known === undefined || known.state === 'same') return []
    const { key, item } = listed
    const value = asJsonObject(item.value)
    const upsert = { key, text: item.text, value }
    if (known.state === 'absent') return [{ ...upsert, change: 'added' }]
    const before = parseExact(known.text)
    if (sameJson(before, value, ignore)) return []
    return [{ ...upsert, change: 'changed', fields: differingFields(before, value, ignore) }]
  })
}
