import { canonicalNumber } from '../json/decimal.ts'
import { isRawNumber, type JsonObject, type JsonValue, numberText } from '../json/value.ts'
import { packTexts } from '../text.ts'

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

export type KeyReading = { ok: true; key: Key } | { ok: false; reason: string }

const LONGEST_KEY = 1000

/**
 * Reads the key of an item: strings and numbers. Anything else is refused, with the reason in words.
 * @param paths The dotted paths of the key's fields.
 */
export function readKey(paths: readonly string[], item: JsonObject): KeyReading {
  const parts: KeyPart[] = []
  for (const path of paths) {
    const part = keyPart(valueAt(item, path.split('.')))
    if (typeof part === 'string') return { ok: false, reason: `key "${path}" ${part}` }
    parts.push(part)
  }
  return { ok: true, key: { id: packTexts(parts.map((part) => part.text)), parts } }
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

/** Returns the part, or what is wrong with the value. */
function keyPart(value: JsonValue | undefined): KeyPart | string {
  if (value === undefined) return 'is missing'
  if (value === null) return 'is null'
  if (typeof value === 'boolean') return `is ${value}, neither text nor a number`
  if (typeof value === 'string') return textPart(value, false)
  if (Array.isArray(value)) return 'is a list'
  if (typeof value === 'object' && !isRawNumber(value)) return 'is an object'
  const text = canonicalNumber(numberText(value))
  return textPart(text, isInteger(text))
}

function textPart(text: string, integer: boolean): KeyPart | string {
  if (text === '') return 'is an empty text'
  if (text.length > LONGEST_KEY) return 'is longer than 1,000 characters'
  if (text.includes('\0')) return 'holds a NUL character'
  return text.isWellFormed() ? { text, integer } : 'holds half of a surrogate pair'
}

/** Whether a canonical number is whole and within 64 bits. */
function isInteger(text: string): boolean {
  return /^-?\d{1,19}$/.test(text) && String(BigInt.asIntN(64, BigInt(text))) === text
}
