import {
  isJsonObject,
  isRawNumber,
  type JsonObject,
  type JsonValue,
  type RawNumber,
} from '../../json/value.ts'

/** A value that has a column of its own: anything but null and objects, whose fields have columns. */
export type Leaf = boolean | string | number | RawNumber | JsonValue[]

/**
 * What is known about each path, as a tree in the shape of the items, so that the path of a field is never put together.
 */
export interface PathNode<T> {
  at: T | undefined
  children: Map<string, PathNode<T>>
}

export function createPathTree<T>(): PathNode<T> {
  return { at: undefined, children: new Map() }
}

/** The node of a path; adds it if it is missing. */
export function nodeAt<T>(root: PathNode<T>, path: readonly string[]): PathNode<T> {
  let node = root
  for (const name of path) {
    const next = node.children.get(name) ?? createPathTree<T>()
    node.children.set(name, next)
    node = next
  }
  return node
}

/** A value's name, linked to the object around it, so that millions of deep values share what is above. */
export interface FieldPath {
  name: string
  above: FieldPath | null
}

/** The names from the item down to the value. */
export function pathOf(field: FieldPath): string[] {
  const names: string[] = []
  for (let at: FieldPath | null = field; at; at = at.above) names.push(at.name)
  return names.toReversed()
}

/**
 * Visits every leaf of an item in order, with what the tree knew about its path when its object was entered.
 * The visit may add to the tree.
 */
export function flatten<T>(
  item: JsonObject,
  node: PathNode<T> | undefined,
  visit: (field: FieldPath, known: T | undefined, value: Leaf) => void,
  above: FieldPath | null = null,
): void {
  for (const name of Object.keys(item)) {
    const value = item[name]
    if (value === null || value === undefined) continue
    const field = { name, above }
    const child = node?.children.get(name)
    if (isJsonObject(value)) flatten(value, child, visit, field)
    else visit(field, child?.at, value)
  }
}

/**
 * Visits every leaf of an item, with what the tree knows about its path, until a visit returns false. The hot
 * loop of a page's commit: it allocates nothing.
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

const STEP = /\.(?:("(?:[^"\\]|\\.)*")|([^."[]+))/g

/**
 * The path of a field for SQLite's JSON functions: `$.customer.email`. A name that is empty or has a dot, a
 * bracket or a character that JSON escapes is quoted as in JSON: `$."a.b"`. Different paths have different
 * texts. SQLite before 3.45 finds no name that holds a `"`; every SQLite finds only the first of several
 * names that are equal up to a NUL.
 */
export function sqlitePath(path: readonly string[]): string {
  return '$' + path.map((name) => `.${isPlain(name) ? name : JSON.stringify(name)}`).join('')
}

/** The reverse of `sqlitePath`. */
export function parseSqlitePath(text: string): string[] {
  return Array.from(text.matchAll(STEP), ([, quoted, plain]) =>
    quoted === undefined ? (plain ?? '') : String(JSON.parse(quoted)),
  )
}

function isPlain(name: string): boolean {
  return name !== '' && JSON.stringify(name) === `"${name}"` && !/[.[]/.test(name)
}
