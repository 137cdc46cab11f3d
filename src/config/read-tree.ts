import {
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  type Node,
  type Scalar,
  type YAMLMap,
  type YAMLSeq,
} from 'yaml'
import type { KeyPath } from './config-error.ts'
import { type Environment, findMalformedReference, interpolate } from './interpolation.ts'
import { collectPairs } from './mapping-pairs.ts'
import type { Places } from './places.ts'
import { isAboutToken, isTakenAsTyped } from './textual-keys.ts'

const DEEPEST = 40
/** Far beyond any real file, and well below what a few aliases of aliases would fill the memory with. */
const MOST_VALUES = 300_000

interface TreeOptions {
  document: Document
  places: Places
  env: Environment
  /** Whether `${NAME}` stays in tokens and in the paths of token files. */
  leaveTokens: boolean
}

/**
 * The plain value of a document, `${NAME}` replaced in its texts (never in its keys), aliases and merge keys followed.
 * Marks where everything stands, and reports what cannot be read; the rest of the file is read all the same.
 */
export function readTree({ document, places, env, leaveTokens }: TreeOptions): unknown {
  /** The mappings and lists around what is being read, so that an alias of one of them is noticed. */
  const around: Node[] = []
  let count = 0

  /** `at` is where the value stands for the reader of the file: of an alias, where the alias is. */
  function readNode(
    node: unknown,
    path: KeyPath,
    key: number | null,
    at = offsetOf(node) ?? key ?? 0,
  ): unknown {
    places.mark(path, { key, value: at })
    count += 1
    if (count === MOST_VALUES)
      places.reportBroken([], 'the aliases (*name) repeat too much. Write the values out.')
    if (count >= MOST_VALUES) return null
    if (path.length > DEEPEST) return broken(path, 'is nested too deeply. Write it with fewer levels.')
    if (isAlias(node)) return readAlias(node.resolve(document), path, key, at)
    if (isMap(node) || isSeq(node)) return readCollection(node, path)
    return isScalar(node) ? readScalar(node, path) : null
  }

  function readAlias(target: Node | undefined, path: KeyPath, key: number | null, at: number): unknown {
    if (!target)
      return broken(path, 'is an alias (*name) of no anchor (&name) further up. Put a text in quotes.')
    if (around.includes(target))
      return broken(path, 'is an alias inside its own anchor. Write the value out.')
    return readNode(target, path, key, at)
  }

  function readCollection(node: YAMLMap | YAMLSeq, path: KeyPath): unknown {
    around.push(node)
    const value = isMap(node)
      ? readMap(node, path)
      : node.items.map((item, index) => readNode(item, [...path, index], null))
    around.pop()
    return value
  }

  function readMap(map: YAMLMap, path: KeyPath): Record<string, unknown> {
    const value: Record<string, unknown> = {}
    for (const pair of collectPairs(map, path, document, places)) {
      value[pair.name] = readNode(pair.value, [...path, pair.name], pair.key)
    }
    return value
  }

  function readScalar(scalar: Scalar, path: KeyPath): unknown {
    if (typeof scalar.value === 'string') return readText(scalar.value, path)
    return scalar.value !== null && isTakenAsTyped(path) ? (scalar.source ?? scalar.value) : scalar.value
  }

  function readText(text: string, path: KeyPath): string {
    if (leaveTokens && isAboutToken(path)) {
      const malformed = findMalformedReference(text)
      if (malformed !== null) places.reportBroken(path, malformed)
      return text
    }
    const result = interpolate(text, env)
    places.markVariables(path, result.variables)
    if ('value' in result) return result.value
    places.reportBroken(path, result.problem)
    return text
  }

  function broken(path: KeyPath, message: string): null {
    places.reportBroken(path, message)
    return null
  }

  return readNode(document.contents, [], null)
}

function offsetOf(node: unknown): number | undefined {
  return isAlias(node) || isMap(node) || isSeq(node) || isScalar(node) ? node.range?.[0] : undefined
}
