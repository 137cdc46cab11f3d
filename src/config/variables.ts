import {
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  type Node,
  type Pair,
  type Scalar,
  visit,
  type YAMLMap,
} from 'yaml'
import { type KeyPath, keyText, offsetOf, type Problems } from './problems.ts'

/** The environment as the commands get it. */
export type Environment = Readonly<Record<string, string | undefined>>

/** Far more than any real file has; a few aliases of aliases could stand for far more, and fill the memory. */
const MOST_VALUES = 300_000

interface ValueOptions {
  document: Document
  problems: Problems
  env: Environment
  /** Whether `${NAME}` stays in tokens and in the paths of token files. */
  leaveTokens: boolean
}

/**
 * Returns the plain value of a document, with `${NAME}` replaced in values (never in keys), and aliases and merge keys
 * resolved. Every scalar but null is the text that was typed, so 007 and 1.10 stay; the schema converts numbers.
 * Reports what cannot be read, and leaves it out.
 */
export function readValues({ document, problems, env, leaveTokens }: ValueOptions): unknown {
  function readScalar(scalar: Scalar, path: KeyPath): void {
    if (scalar.value === null) return
    const text = typeof scalar.value === 'string' ? scalar.value : (scalar.source ?? '')
    scalar.value = text
    if (leaveTokens && isSecret(path)) {
      problems.noteVariables(scalar, variablesIn(text))
      const malformed = findMalformedReference(text)
      if (malformed !== null) problems.reportBroken(path, malformed)
      return
    }
    const result = interpolate(text, env)
    problems.noteVariables(scalar, result.variables)
    if ('value' in result) scalar.value = result.value
    else problems.reportBroken(path, result.problem)
  }

  visit(document, {
    Map: (_, map, around) => reportRepeated(map, keyPathOf(around, map), problems),
    Pair(_, pair, around) {
      const path = keyPathOf(around, pair)
      if (isMergeKey(pair)) {
        if (isMergeable(pair.value, problems, around)) return undefined
        problems.reportAt(offsetOf(pair.key), path, NOT_MERGEABLE)
        problems.takeOut(pair)
        return visit.REMOVE
      }
      if (keyText(pair.key) !== null) return undefined
      problems.reportAt(offsetOf(pair.key), path.slice(0, -1), NO_KEY)
      problems.takeOut(pair)
      return visit.REMOVE
    },
    Alias(_, alias, around) {
      const target = problems.resolved(alias)
      if (target && !around.includes(target)) return undefined
      problems.reportBroken(keyPathOf(around, alias), target ? OWN_ANCHOR : NO_ANCHOR)
      return visit.REMOVE
    },
    Scalar(key, scalar, around) {
      if (key === 'key') scalar.value = keyText(scalar)
      else readScalar(scalar, keyPathOf(around, scalar))
    },
  })
  if (countValues(document, problems) <= MOST_VALUES) return document.toJS({ maxAliasCount: -1 })
  problems.reportBroken([], 'the aliases (*name) repeat too much. Write the values out.')
  return null
}

const NOT_MERGEABLE =
  'merges something that is not a mapping. Write <<: *name, with &name at a mapping further up.'
const NO_KEY =
  'holds something that cannot be a key. Write each line as "key: value", with a plain word as the key.'
const NO_ANCHOR =
  'is an alias (*name), and there is no anchor (&name) for it further up. Put a text in quotes.'
const OWN_ANCHOR = 'is an alias inside its own anchor. Write the value out.'

function reportRepeated(map: YAMLMap, path: KeyPath, problems: Problems): void {
  const first = new Map<string, unknown>()
  for (const { key } of map.items) {
    const name = keyText(key)
    if (name === null) continue
    if (!first.has(name)) first.set(name, key)
    else {
      const line = problems.lineAt(offsetOf(first.get(name)))
      problems.reportAt(
        offsetOf(key),
        [...path, name],
        `is given twice, first in line ${line}. Keep one of the two.`,
      )
    }
  }
}

function isMergeKey({ key }: Pair): boolean {
  return isScalar(key) && key.type === 'PLAIN' && key.source === '<<'
}

function isMergeable(value: unknown, { resolved }: Problems, around: readonly unknown[]): boolean {
  const target = resolved(value as Node | null)
  const sources = (isSeq(target) ? target.items : [target]).map((source) => resolved(source as Node | null))
  return sources.every((source) => isMap(source) && !around.includes(source))
}

/** The key path of a node, from the nodes around it. */
function keyPathOf(around: readonly unknown[], node: unknown): KeyPath {
  return [...around, node].flatMap<string | number>((part, index, parts) => {
    const parent = parts[index - 1]
    if (isSeq(parent)) return [parent.items.indexOf(part)]
    return isPairOf(parent, part)
      ? [String(isScalar(part.key) ? (part.key.source ?? part.key.value) : '')]
      : []
  })
}

function isPairOf(parent: unknown, part: unknown): part is Pair {
  return isMap(parent) && typeof part === 'object' && part !== null && 'key' in part
}

/** Whether a value is or names a token or a ping's address: commands that need neither leave its variables unresolved. */
function isSecret(path: KeyPath): boolean {
  const [first, index, key, ...deeper] = path
  if (first === 'ping' && path.length === 1) return true
  const isOfOrganization = first === 'organizations' && typeof index === 'number' && deeper.length === 0
  return isOfOrganization && (key === 'token' || key === 'tokenFile')
}

/** Counts the values of the document as if every alias was written out. */
function countValues(document: Document, { resolved }: Problems): number {
  const counts = new Map<Node, number>()

  function count(node: unknown): number {
    if (isAlias(node)) return count(resolved(node))
    if (!isMap(node) && !isSeq(node)) return 1
    const known = counts.get(node)
    if (known !== undefined) return known
    const inside = isMap(node) ? node.items.map(({ value }) => value) : node.items
    const sum = inside.reduce<number>((total, item) => total + count(item), 1)
    counts.set(node, sum)
    return sum
  }

  return count(document.contents)
}

const REFERENCE = /\$\$|\$\{(?:([A-Za-z_][A-Za-z0-9_]*)\})?/g

/** A text with its variables replaced, or why not; in both cases the variables that it names. */
type Interpolated = { value: string; variables: string[] } | { problem: string; variables: string[] }

/**
 * Replaces `${NAME}` by the environment variable, and `$$` by a dollar; a dollar before anything else stays. A
 * variable's value is used unchanged, dollars included, and never quoted in a problem.
 */
export function interpolate(text: string, env: Environment): Interpolated {
  const variables: string[] = []
  let problem: string | null = null
  const value = text.replaceAll(REFERENCE, (reference: string, name: string | undefined) => {
    if (reference === '$$') return '$'
    if (name === undefined) {
      problem ??= MALFORMED
      return reference
    }
    variables.push(name)
    const found = Object.hasOwn(env, name) ? env[name] : undefined
    if (!found) problem ??= unsetText(name, found)
    return found ?? ''
  })
  return problem === null ? { value, variables } : { problem, variables }
}

function variablesIn(text: string): string[] {
  return [...text.matchAll(REFERENCE)].flatMap(([, name]) => name ?? [])
}

/** The problem of a text whose variables stay unresolved, or null. */
function findMalformedReference(text: string): string | null {
  for (const [reference, name] of text.matchAll(REFERENCE)) {
    if (reference !== '$$' && name === undefined) return MALFORMED
  }
  return null
}

const MALFORMED = `has a \${ that no variable follows. Write \${NAME}, with letters, digits and _ only, or $\${ for a dollar and a brace.`

function unsetText(name: string, found: string | undefined): string {
  const state = found === '' ? 'is empty' : 'is not set'
  return `the environment variable ${name} ${state}. Set ${name} before the program starts, or write the value here ($$ for a dollar).`
}
