import { createHash } from 'node:crypto'
import { JobError } from '../errors.ts'
import {
  canonicalNumber,
  integerIn,
  isJsonObject,
  isRawNumber,
  type JsonObject,
  type JsonValue,
  numberText,
  sameJson,
} from '../json/value.ts'
import { jobName } from '../text.ts'
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
      throw new JobError(
        'BAD_RESPONSE',
        `${jobName(job)} page ${page.number}: items ${page.items.indexOf(other.item) + 1} and ${page.items.indexOf(item) + 1} differ, but have the ` +
          `same key (${job.collection.key.join(', ')}); give the collection a "key" that tells its items apart`,
      )
  }
  return [...listed.values()]
}

/** Whether the id belongs to an item without a usable key. No key contains NUL. */
export function isRejectId(id: string): boolean {
  return id.startsWith('\0')
}

function identifyItem(keyPaths: readonly string[], item: Item): ListedItem {
  const key = isJsonObject(item.value) ? readKey(keyPaths, item.value) : 'is not an object'
  if (typeof key !== 'string') return { item, id: key.id, key }
  const fingerprint = createHash('sha256').update(item.text).digest('base64url')
  return { item, id: `\0${fingerprint}`, reject: key }
}

/** SQLite's JSON functions stop at 1,000 levels, and one such row would make every view of its table's lists fail. */
const DEEPEST = 500

function isDeeper(value: JsonValue, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false
  return levels === 0 || Object.values(value).some((one) => isDeeper(one, levels - 1))
}

/** Identifies an item of a list. */
export interface Key {
  /** `1001`, or a JSON list of texts if the key has several fields. */
  id: string
  parts: readonly KeyPart[]
}

/** One field of an item's key. */
export interface KeyPart {
  /** The same for 1, 1.0 and "1". */
  text: string
  /** It came as a JSON integer within 64 bits. */
  integer: boolean
}

/** The same in both stores: an entry of a PostgreSQL index has at most 2,704 bytes, and holds the organization and the collection's name, too. */
const LONGEST_ID_BYTES = 2400

/**
 * Reads the key of an item: strings and numbers. Anything else is refused, with the reason in words.
 * @param paths The dotted paths of the key's fields.
 */
export function readKey(paths: readonly string[], item: JsonObject): Key | string {
  if (isDeeper(item, DEEPEST)) return `is nested deeper than ${DEEPEST} levels`
  const parts: KeyPart[] = []
  for (const path of paths) {
    const part = keyPart(fieldAt(item, path.split('.')))
    if (typeof part === 'string') return `key "${path}" ${part}`
    parts.push(part)
  }
  const texts = parts.map((part) => part.text)
  // A single text is itself, several are a JSON list.
  const id = texts.length === 1 ? texts.join() : JSON.stringify(texts)
  return Buffer.byteLength(id) > LONGEST_ID_BYTES
    ? `key "${paths.join(', ')}" is longer than 2,400 bytes`
    : { id, parts }
}

function fieldAt(item: JsonObject, path: readonly string[]): JsonValue | undefined {
  let value: JsonValue | undefined = item
  for (const name of path)
    value = value !== undefined && isJsonObject(value) && Object.hasOwn(value, name) ? value[name] : undefined
  return value
}

/** Returns the part, or what is wrong with the value. */
function keyPart(value: JsonValue | undefined): KeyPart | string {
  if (value === undefined) return 'is missing'
  if (value === null) return 'is null'
  if (typeof value === 'string') return textPart(value, false)
  if (typeof value !== 'number' && !isRawNumber(value)) return 'is neither text nor a number'
  const text = canonicalNumber(numberText(value))
  return textPart(text, integerIn(text) !== null)
}

function textPart(text: string, integer: boolean): KeyPart | string {
  if (text === '') return 'is an empty text'
  if (text.includes('\0')) return 'holds a NUL character'
  return text.isWellFormed() ? { text, integer } : 'holds half of a surrogate pair'
}
