import { isJsonObject, type JsonObject } from '../../../src/json/value.ts'
import type { Leaf } from '../../../src/store/columns/flatten.ts'

/**
 * The fields of an item in their order, objects opened up: scalars, nulls and arrays. An empty object has
 * none.
 */
export function leavesOf(
  item: JsonObject,
  above: readonly string[] = [],
): [path: string[], value: Leaf | null][] {
  return Object.entries(item).flatMap(([name, value]) => {
    const path = [...above, name]
    return isJsonObject(value) ? leavesOf(value, path) : [[path, value] as [string[], Leaf | null]]
  })
}
