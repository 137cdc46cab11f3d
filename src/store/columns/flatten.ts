import { isJsonObject, type JsonObject, type JsonValue, type RawNumber } from '../../json/value.ts'
import type { PathNode } from './path-tree.ts'

/** A value that has a column of its own: anything but an object, whose fields are joined, and null. */
export type Leaf = boolean | string | number | RawNumber | JsonValue[]

/**
 * Where a value stands: its name, and the object around it. Made of links, so that millions of values under hundreds of
 * levels share what is above them.
 */
export interface Place {
  name: string
  above: Place | null
}

/** The names from the item down to the value. */
export function pathOf(place: Place): string[] {
  const path: string[] = []
  for (let at: Place | null = place; at; at = at.above) path.push(at.name)
  return path.toReversed()
}

/**
 * Visits the values of an item in their order, objects opened up, nulls left out, each with what the tree knew about its
 * path when its object was entered. The visit may add to the tree.
 */
export function flatten<T>(
  item: JsonObject,
  node: PathNode<T> | undefined,
  visit: (place: Place, known: T | undefined, value: Leaf) => void,
  above: Place | null = null,
): void {
  for (const name of Object.keys(item)) {
    const value = item[name]
    if (value === null || value === undefined) continue
    const place = { name, above }
    const child = node?.children.get(name)
    if (isJsonObject(value)) flatten(value, child, visit, place)
    else visit(place, child?.at, value)
  }
}
