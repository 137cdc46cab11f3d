import { type Document, isAlias, isMap, isScalar, isSeq, type Pair, type YAMLMap } from 'yaml'
import type { KeyPath } from './config-error.ts'
import type { Places } from './places.ts'

/** One `key: value` of a mapping; `key` is the key's offset in the file, `value` the YAML node. */
export interface NamedPair {
  name: string
  key: number
  value: unknown
}

/**
 * The pairs of a mapping in file order, after them those that merge keys (`<<`) bring in and that it does not give
 * itself; of two mappings merged the first wins. Reports keys given twice and keys that are no text.
 */
export function collectPairs(map: YAMLMap, path: KeyPath, document: Document, places: Places): NamedPair[] {
  const found = new Map<string, NamedPair>()
  const visited = new Set<YAMLMap>()

  function visit(source: YAMLMap): void {
    // A mapping met again adds nothing, and one that merges itself would never end.
    if (visited.has(source)) return
    visited.add(source)
    for (const [name, pair] of ownPairs(source, path, places)) {
      if (!found.has(name)) found.set(name, pair)
    }
    for (const { key, value } of source.items.filter(isMergeKey)) {
      const merged = mergedMaps(value, document)
      if (merged) merged.forEach(visit)
      else places.reportAt(offsetOf(key), [...path, '<<'], NOT_MERGEABLE)
    }
  }

  visit(map)
  return [...found.values()]
}

const NOT_MERGEABLE =
  'merges something that is no mapping. Write <<: *name, with &name at a mapping further up.'
const NO_KEY =
  'holds a key that cannot be one. Write each line as "key: value", with a plain word as the key.'

function ownPairs(map: YAMLMap, path: KeyPath, places: Places): Map<string, NamedPair> {
  const own = new Map<string, NamedPair>()
  for (const { key, value } of map.items.filter((pair) => !isMergeKey(pair))) {
    const name = nameOf(key)
    const first = name === null ? undefined : own.get(name)
    if (name === null) places.reportAt(offsetOf(key), path, NO_KEY)
    else if (first) reportRepeated(offsetOf(key), [...path, name], first, places)
    else own.set(name, { name, key: offsetOf(key), value })
  }
  return own
}

function reportRepeated(offset: number, path: KeyPath, first: NamedPair, places: Places): void {
  places.reportAt(
    offset,
    path,
    `is given twice, first in line ${places.lineAt(first.key)}. Keep one of the two.`,
  )
}

/** A key is taken as it was typed, 007 or true too. `__proto__` is none: JavaScript gives it a meaning of its own. */
function nameOf(key: unknown): string | null {
  if (!isScalar(key)) return null
  const name = typeof key.value === 'string' ? key.value : (key.source ?? '')
  return name === '' || name === '__proto__' ? null : name
}

function isMergeKey({ key }: Pair): boolean {
  return isScalar(key) && key.type === 'PLAIN' && key.source === '<<'
}

function mergedMaps(value: unknown, document: Document): YAMLMap[] | null {
  const target = isAlias(value) ? value.resolve(document) : value
  if (isMap(target)) return [target]
  if (!isSeq(target)) return null
  const maps = target.items.map((item) => (isAlias(item) ? item.resolve(document) : item))
  return maps.every((item) => isMap(item)) ? maps : null
}

function offsetOf(key: unknown): number {
  return isAlias(key) || isMap(key) || isSeq(key) || isScalar(key) ? (key.range?.[0] ?? 0) : 0
}
