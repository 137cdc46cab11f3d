import { createHash } from 'node:crypto'
import { JobError } from '../errors.ts'
import { isJsonObject } from '../json/exact.ts'
import { sameJson } from '../json/same.ts'
import type { Item, SightedItem } from '../sync/types.ts'
import { printable } from '../text.ts'
import { readKey } from './columns/key.ts'

const IGNORE_NOTHING: ReadonlySet<string> = new Set()

/**
 * Tells each item of a page by its mark: its key, or for an item that cannot be placed a fingerprint of its text. The
 * same item twice has one entry. Two different items with one key are no list that can be mirrored by that key.
 */
export function sightItems(items: readonly Item[], keyPaths: readonly (readonly string[])[]): SightedItem[] {
  const entries = new Map<string, SightedItem>()
  for (const item of items) {
    const entry = sightItem(item, keyPaths)
    const other = entries.get(entry.mark)
    if (!other) entries.set(entry.mark, entry)
    else if (!sameJson(other.item.value, item.value, IGNORE_NOTHING)) throw ambiguous(entry.mark, keyPaths)
  }
  return [...entries.values()]
}

function sightItem(item: Item, keyPaths: readonly (readonly string[])[]): SightedItem {
  if (!isJsonObject(item.value)) return { item, mark: fingerprint(item.text), reject: 'is no object' }
  const reading = readKey(keyPaths, item.value)
  if (!reading.ok) return { item, mark: fingerprint(item.text), reject: reading.reason }
  const [first, ...others] = reading.parts
  const mark =
    first && others.length === 0 ? first.text : JSON.stringify(reading.parts.map((part) => part.text))
  return { item, mark, key: reading.parts }
}

/** Begins with NUL, which no key holds: so it is never taken for one. */
function fingerprint(text: string): string {
  return `\0${createHash('sha256').update(text).digest('base64url')}`
}

function ambiguous(mark: string, keyPaths: readonly (readonly string[])[]): JobError {
  const key = keyPaths.map((path) => path.join('.')).join(', ')
  return new JobError(
    'BAD_RESPONSE',
    `two different items of the page have the same key (${key}: ${printable(mark, 80)}); ` +
      `give the collection a "key" that tells its items apart`,
  )
}
