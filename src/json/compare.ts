import {
  canonicalNumber,
  isJsonObject,
  isRawNumber,
  type JsonObject,
  type JsonValue,
  numberText,
  type RawNumber,
} from './value.ts'

/**
 * Whether two JSON values are the same: the order of fields does not count, numbers are compared by value (1.10 is
 * 1.1), a missing field differs from null.
 * @param ignore Dotted paths of fields that are not compared, present or not. They lead through objects, not into
 *   arrays; a name that itself has dots matches as plain text.
 */
export function sameJson(a: JsonValue, b: JsonValue, ignore: ReadonlySet<string>): boolean {
  return same(a, b, ignore.size > 0 ? { ignore, prefix: '' } : null)
}

/** Where in the item the comparison is, while an ignored path can still lead further. */
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
  // Unequal plain numbers have unequal values: the text of each is the shortest of its value.
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
    const [left, right] = [a[name], ownField(b, name)]
    if (left === undefined || right === undefined) return false
    if (!same(left, right, place && { ignore: place.ignore, prefix: `${path}.` })) return false
  }
  return Object.keys(b).every((name) => Object.hasOwn(a, name) || place?.ignore.has(place.prefix + name))
}

const NOTHING: ReadonlySet<string> = new Set()

/**
 * The dotted paths at which two values differ by `sameJson`, in the order of the first one's fields; empty where they
 * are the same. Lists are compared as a whole, and so is a value that is an object on one side only.
 * @param ignore As for `sameJson`.
 * @param most How many paths to look for at most: two objects may differ in a million.
 */
export function differingPaths(
  a: JsonValue,
  b: JsonValue,
  ignore: ReadonlySet<string>,
  most = Number.POSITIVE_INFINITY,
): string[] {
  return [...pathsBelow(a, b, ignore, []).take(most)].map((names) => names.join('.'))
}

/** As `differingPaths`, each path as its names from the value down. */
export function differingFields(a: JsonValue, b: JsonValue, ignore: ReadonlySet<string>): string[][] {
  return [...pathsBelow(a, b, ignore, [])]
}

function* pathsBelow(
  a: JsonValue,
  b: JsonValue,
  ignore: ReadonlySet<string>,
  at: readonly string[],
): Generator<string[]> {
  if (!isJsonObject(a) || !isJsonObject(b)) {
    if (!sameJson(a, b, NOTHING)) yield [...at]
    return
  }
  for (const name of new Set([...Object.keys(a), ...Object.keys(b)])) {
    const path = [...at, name]
    if (ignore.has(path.join('.'))) continue
    const [left, right] = [ownField(a, name), ownField(b, name)]
    if (left === undefined || right === undefined) yield path
    else yield* pathsBelow(left, right, ignore, path)
  }
}

/** Only the object's own fields: a field may be called `constructor`. */
function ownField(object: JsonObject, name: string): JsonValue | undefined {
  return Object.hasOwn(object, name) ? object[name] : undefined
}
