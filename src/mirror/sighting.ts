import { createHash } from 'node:crypto'
import { JobError } from '../errors.ts'
import { isJsonObject, type JsonObject } from '../json/exact.ts'
import { sameJson } from '../json/same.ts'
import type { Item, Job, Page, SightedItem } from '../sync/types.ts'
import { printable } from '../text.ts'
import { readKey } from './columns/key.ts'

type KeyPaths = readonly (readonly string[])[]

export function keyPathsOf({ collection }: Pick<Job, 'collection'>): string[][] {
  return collection.key.map((path) => path.split('.'))
}

/**
 * Tells each item of a page by its mark: its key, or for an item that cannot be placed a fingerprint of its text. The
 * same item twice has one entry. Two different items with one key are no list that can be mirrored by that key.
 */
export function sightItems(job: Job, page: Page, keyPaths: KeyPaths): SightedItem[] {
  // The key is the same, 1 or "1": that is no difference.
  const ignore = new Set([...job.collection.ignore, ...job.collection.key])
  const entries = new Map<string, SightedItem>()
  for (const item of page.items) {
    const entry = sightItem(item, keyPaths)
    const other = entries.get(entry.mark)
    if (!other) entries.set(entry.mark, entry)
    else if (other.item.text !== item.text && !sameJson(other.item.value, item.value, ignore))
      throw ambiguous(job, page, entry.mark)
  }
  return [...entries.values()]
}

function sightItem(item: Item, keyPaths: KeyPaths): SightedItem {
  if (item.recognized) return { item, mark: item.recognized.mark, key: item.recognized.key }
  if (!isJsonObject(item.value)) return { item, mark: fingerprint(item.text), reject: 'is no object' }
  const reading = readKey(keyPaths, item.value)
  if (!reading.ok) return { item, mark: fingerprint(item.text), reject: reading.reason }
  return { item, mark: markOf(reading.parts.map((part) => part.text)), key: reading.parts }
}

/** The mark of the item with this key, given by the texts of its parts. */
export function markOf(texts: readonly string[]): string {
  const [first, ...others] = texts
  return first !== undefined && others.length === 0 ? first : JSON.stringify(texts)
}

/** The key of so many parts that a mark was made of. */
export function keyOfMark(mark: string, parts: number): { text: string }[] {
  const texts = parts === 1 ? [mark] : (JSON.parse(mark) as string[])
  return texts.map((text) => ({ text }))
}

/** The exact values of an item that is an object. */
export function objectOf({ value }: Item): JsonObject {
  if (isJsonObject(value)) return value
  throw new Error('the item is no object')
}

/** Begins with NUL, which no key holds: so it is never taken for one. */
function fingerprint(text: string): string {
  return `\0${createHash('sha256').update(text).digest('base64url')}`
}

function ambiguous({ organization, collection }: Job, page: Page, mark: string): JobError {
  return new JobError(
    'BAD_RESPONSE',
    `${organization.name} ${collection.name} page ${page.number}: two different items have the same key ` +
      `(${collection.key.join(', ')}: ${printable(mark, 80)}); give the collection a "key" that tells its items apart`,
  )
}
