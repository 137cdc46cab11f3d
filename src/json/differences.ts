import { isJsonObject, type JsonValue } from './exact.ts'
import { sameJson } from './same.ts'

const NOTHING: ReadonlySet<string> = new Set()

/**
 * The dotted paths at which two values differ, as `sameJson` tells it, in the order of the first one's fields. Lists are
 * compared as a whole, and so is a value that is an object on one side only. Empty where the two are the same.
 * @param ignore Dotted paths that are not compared, as `sameJson` takes them.
 * @param most Paths beyond these are not looked for: two objects may differ in a million.
 */
export function differingPaths(
  a: JsonValue,
  b: JsonValue,
  ignore: ReadonlySet<string>,
  most = Number.POSITIVE_INFINITY,
): string[] {
  return [...pathsBelow(a, b, ignore, null).take(most)]
}

function* pathsBelow(
  a: JsonValue,
  b: JsonValue,
  ignore: ReadonlySet<string>,
  at: string | null,
): Generator<string> {
  if (!isJsonObject(a) || !isJsonObject(b)) {
    if (!sameJson(a, b, NOTHING)) yield at ?? ''
    return
  }
  for (const name of new Set([...Object.keys(a), ...Object.keys(b)])) {
    const path = at === null ? name : `${at}.${name}`
    if (ignore.has(path)) continue
    // Read only what is the object's own: a field may be called `constructor`.
    const [left, right] = [own(a, name), own(b, name)]
    if (left === undefined || right === undefined) yield path
    else yield* pathsBelow(left, right, ignore, path)
  }
}

function own(object: Record<string, JsonValue>, name: string): JsonValue | undefined {
  return Object.hasOwn(object, name) ? object[name] : undefined
}
