import { canonicalNumber } from '../../json/decimal.ts'
import { isRawNumber, type JsonObject, type JsonValue, numberText } from '../../json/exact.ts'
import { ownValue } from './sql-value.ts'

/** One field of an item's key. */
export interface KeyPart {
  /** The same for 1, 1.0 and "1". */
  text: string
  /** It came as a JSON number that is whole and within 64 bits. */
  integer: boolean
}

export type KeyType = 'INTEGER' | 'TEXT'

export type KeyReading = { ok: true; parts: KeyPart[] } | { ok: false; reason: string }

const LONGEST_KEY = 1000

/** Reads the key of an item. A key is made of strings and numbers; anything else is refused, with the reason in words. */
export function readKey(keyPaths: readonly (readonly string[])[], item: JsonObject): KeyReading {
  const parts: KeyPart[] = []
  for (const path of keyPaths) {
    const part = keyPart(valueAt(item, path))
    if (typeof part === 'string') return { ok: false, reason: `key "${path.join('.')}" ${part}` }
    parts.push(part)
  }
  return { ok: true, parts }
}

/**
 * The types of the key columns after these values: INTEGER as long as every value was a JSON integer, then TEXT for good.
 * @param current Null where no value was seen yet.
 */
export function keyColumnTypes(current: readonly (KeyType | null)[], parts: readonly KeyPart[]): KeyType[] {
  return parts.map((part, index) => (part.integer && current[index] !== 'TEXT' ? 'INTEGER' : 'TEXT'))
}

function valueAt(item: JsonObject, path: readonly string[]): JsonValue | undefined {
  let value: JsonValue | undefined = item
  for (const name of path) {
    if (typeof value !== 'object' || value === null || Array.isArray(value) || isRawNumber(value))
      return undefined
    value = Object.hasOwn(value, name) ? value[name] : undefined
  }
  return value
}

/** The part, or what is wrong with the value. */
function keyPart(value: JsonValue | undefined): KeyPart | string {
  if (value === undefined) return 'is missing'
  if (value === null) return 'is null'
  if (typeof value === 'boolean') return `is ${value}, neither text nor a number`
  if (typeof value === 'string') return textPart(value, false)
  if (Array.isArray(value)) return 'is a list'
  if (typeof value === 'object' && !isRawNumber(value)) return 'is an object'
  return textPart(canonicalNumber(numberText(value)), typeof ownValue(value) === 'bigint')
}

function textPart(text: string, integer: boolean): KeyPart | string {
  if (text === '') return 'is an empty text'
  if (text.length > LONGEST_KEY) return 'is longer than 1,000 characters'
  if (text.includes('\0')) return 'holds a NUL character'
  return text.isWellFormed() ? { text, integer } : 'holds half of a surrogate pair'
}
