import { parseExact } from '../../src/json/exact.ts'
import type { Item, Page } from '../../src/sync/types.ts'

/** An item as the API room hands it on: the text that was sent, and its values. */
export function itemOf(text: string): Item {
  return { text, value: parseExact(text) }
}

/** A page that holds these texts and is the only one, or what is said instead. */
export function pageOf(texts: readonly string[], changed: Partial<Page> = {}): Page {
  return {
    number: 1,
    items: texts.map(itemOf),
    next: null,
    total: texts.length,
    lastPage: 1,
    paginated: true,
    announcedLimit: null,
    announcedLeft: null,
    ...changed,
  }
}
