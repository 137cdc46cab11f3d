import { parseExact } from '../../src/json/exact.ts'
import type { Item, Page } from '../../src/sync/types.ts'

/** An item as the API room hands it on. */
export function itemOf(text: string): Item {
  const value = parseExact(text)
  return { text: JSON.stringify(value), value }
}

/** A page that holds these texts and is the only one, or what is said instead. */
export function pageOf(texts: readonly string[], changed: Partial<Page> = {}): Page {
  return {
    number: 1,
    items: texts.map(itemOf),
    next: null,
    total: texts.length,
    lastPage: 1,
    ...changed,
  }
}
