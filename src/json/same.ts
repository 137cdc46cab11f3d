import { canonicalNumber } from './decimal.ts'
import { isRawNumber, type JsonObject, type JsonValue, numberText, type RawNumber } from './exact.ts'

/**
 * Whether two JSON values are the same: the order of fields is no difference, numbers count by their value (1.10 is
 * 1.1), a field that is missing differs from null.
 * @param ignore Dotted paths of fields that are not compared, whatever they hold and whether they are there or not.
 *   They lead through objects, not into arrays; a name that itself has dots is met by its plain text.
 */
export function sameJson(a: JsonValue, b: JsonValue, ignore: ReadonlySet<string>): boolean {
  return same(a, b, ignore.size > 0 ? { ignore, prefix: '' } : null)
}

/** Where in the item we are, as long as an ignored path can still lead further. */
interface Place {
  ignore: ReadonlySet<string>
  prefix: string
}

function same(a: JsonValue, b: JsonValue, place: Place | null): boolean {
  if (a === b) return true
  if (isNumber(a)) return isNumber(b) && sameNumber(a, b)
  if (a === null || b === null || typeof a !== 'object' || typeof b !== 'object' || isNumber(b)) return false
  if (Array.isArray(a)) return Array.isArray(b) && sameArray(a, b)
  return !Array.isArray(b) && sameObject(a, b, place)
}

function isNumber(value: JsonValue): value is number | RawNumber {
  return typeof value === 'number' || isRawNumber(value)
}

function sameNumber(a: number | RawNumber, b: number | RawNumber): boolean {
  // Two plain numbers that differ have different texts, each the shortest of its value, and so different values.
  if (typeof a === 'number' && typeof b === 'number') return false
  return canonicalNumber(numberText(a)) === canonicalNumber(numberText(b))
}

function sameArray(a: readonly JsonValue[], b: readonly JsonValue[]): boolean {
  if (a.length !== b.length) return false
  for (const [index, value] of a.entries()) {
    const other = b[index]
    if (other === undefined || !same(value, other, null)) return false
  }
  return true
}

function sameObject(a: JsonObject, b: JsonObject, place: Place | null): boolean {
  for (const name of Object.keys(a)) {
    const path = place ? place.prefix + name : ''
    if (place?.ignore.has(path)) continue
    // Read only what is the object's own: a field may be called `constructor`.
    const [left, right] = [a[name], Object.hasOwn(b, name) ? b[name] : undefined]
    if (left === undefined || right === undefined) return false
    if (!same(left, right, place && { ignore: place.ignore, prefix: `${path}.` })) return false
  }
  return Object.keys(b).every((name) => Object.hasOwn(a, name) || place?.ignore.has(place.prefix + name))
}
