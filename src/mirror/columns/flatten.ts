import { isJsonObject, type JsonObject, type JsonValue, type RawNumber } from '../../json/exact.ts'

/** A value that has a column of its own: anything but an object, whose fields are joined, and null. */
export type Leaf = boolean | string | number | RawNumber | JsonValue[]

/** The fields of an item in their order, objects opened up: scalars, nulls and arrays. An empty object has none. */
export function flatten(
  item: JsonObject,
  above: readonly string[] = [],
): [path: string[], value: Leaf | null][] {
  return Object.entries(item).flatMap(([name, value]) => {
    const path = [...above, name]
    return isJsonObject(value) ? flatten(value, path) : [[path, value] as [string[], Leaf | null]]
  })
}
