import { createHash } from 'node:crypto'
import { JobError } from '../errors.ts'
import { sameJson } from '../json/compare.ts'
import { isJsonObject } from '../json/value.ts'
import { printable } from '../text.ts'
import { type Key, readKey } from './key.ts'
import type { Item, Job, Page } from './types.ts'

/**
 * An item of a page, with its key or the reason why it has none. `id`: the key's id, or for a reject a fingerprint of
 * its text that begins with NUL.
 */
export type ListedItem = { item: Item; id: string; key: Key } | { item: Item; id: string; reject: string }

/** `same`: stored with exactly this text; `different`: with another one. A stored reject has no times. */
export type StoredItem =
  | { state: 'absent' }
  | { state: 'same'; times: RowTimes | null }
  | { state: 'different'; text: string; times: RowTimes }

/** When a row was first seen, and since when it is as it is. Epoch milliseconds. */
export interface RowTimes {
  firstAt: number
  changedAt: number
}

/** Returns the distinct items of a page. Throws BAD_RESPONSE if two different items have the same key. */
export function identifyItems(job: Job, page: Page): ListedItem[] {
  // The same key may come as 1 and as "1": that is no difference.
  const ignore = new Set([...job.collection.ignore, ...job.collection.key])
  const listed = new Map<string, ListedItem>()
  for (const item of page.items) {
    const identified = identifyItem(job.collection.key, item)
    const other = listed.get(identified.id)
    if (!other) listed.set(identified.id, identified)
    else if (other.item.text !== item.text && !sameJson(other.item.value, item.value, ignore))
      throw ambiguous(job, page, identified.id)
  }
  return [...listed.values()]
}

/** Whether the id belongs to an item without a usable key. No key contains NUL. */
export function isRejectId(id: string): boolean {
  return id.startsWith('\0')
}

function identifyItem(keyPaths: readonly string[], item: Item): ListedItem {
  if (!isJsonObject(item.value)) return { item, id: fingerprint(item.text), reject: 'is no object' }
  const reading = readKey(keyPaths, item.value)
  if (!reading.ok) return { item, id: fingerprint(item.text), reject: reading.reason }
  return { item, id: reading.key.id, key: reading.key }
}

function fingerprint(text: string): string {
  return `\0${createHash('sha256').update(text).digest('base64url')}`
}

function ambiguous({ organization, collection }: Job, page: Page, id: string): JobError {
  return new JobError(
    'BAD_RESPONSE',
    `${organization.name} ${collection.name} page ${page.number}: two different items have the same key ` +
      `(${collection.key.join(', ')}: ${printable(id, 80)}); give the collection a "key" that tells its items apart`,
  )
}
