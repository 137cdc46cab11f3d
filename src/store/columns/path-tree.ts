import { isRawNumber, type JsonObject } from '../../json/value.ts'
import type { Leaf } from './flatten.ts'

/** What is known about each path, in the shape of the items themselves: so no path has to be spelled out for each field. */
export interface PathNode<T> {
  at: T | undefined
  children: Map<string, PathNode<T>>
}

export function createPathTree<T>(): PathNode<T> {
  return { at: undefined, children: new Map() }
}

/** The node of a path, made if it is missing. */
export function nodeAt<T>(root: PathNode<T>, path: readonly string[]): PathNode<T> {
  let node = root
  for (const name of path) {
    const next = node.children.get(name) ?? createPathTree<T>()
    node.children.set(name, next)
    node = next
  }
  return node
}

/**
 * Visits every field of the item that is neither null nor an object, with what the tree knows about its path, until a visit
 * returns false. This is the hot loop of saving a page: it allocates nothing.
 */
export function everyLeaf<T>(
  node: PathNode<T> | undefined,
  item: JsonObject,
  visit: (known: T | undefined, value: Leaf) => boolean,
): boolean {
  for (const name of Object.keys(item)) {
    const value = item[name]
    if (value === null || value === undefined) continue
    const child = node?.children.get(name)
    const isLeaf = typeof value !== 'object' || Array.isArray(value) || isRawNumber(value)
    if (!(isLeaf ? visit(child?.at, value) : everyLeaf(child, value, visit))) return false
  }
  return true
}
