import {
  type Document,
  isAlias,
  isMap,
  isNode,
  isScalar,
  isSeq,
  type LineCounter,
  type Node,
  type Pair,
  visit,
} from 'yaml'

/** Where a value is in the configuration file: keys of mappings and indexes of lists, from the top. */
export type KeyPath = readonly (string | number)[]

/** One mistake in the file. `line` and `column` count from 1; null for the file as a whole. */
export interface Problem {
  key: string
  line: number | null
  column: number | null
  /** What is wrong, then what to do, in whole sentences. Never holds a value of the file or the environment. */
  message: string
}

/** All problems of one configuration file, in the order of its lines. Ends a command with exit code 2. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
  readonly problems: readonly Problem[]

  constructor(file: string, problems: readonly Problem[]) {
    const unique = new Map(problems.map((problem) => [JSON.stringify(problem), problem]))
    const sorted = [...unique.values()].toSorted(byPlace)
    super(sorted.map((problem) => formatProblem(file, problem)).join('\n'))
    this.problems = sorted
  }
}

function byPlace(a: Problem, b: Problem): number {
  return (a.line ?? 0) - (b.line ?? 0) || (a.column ?? 0) - (b.column ?? 0)
}

function formatProblem(file: string, { key, line, column, message }: Problem): string {
  const place = line === null ? file : `${file}:${line}:${column}`
  return `${place}  ${key === '' ? message : `${key}: ${message}`}`
}

/**
 * A key path as people write it: `organizations[0].token`; a name that is not a plain word is quoted, and cut after a
 * colon: where `token:abc` lacks its space, the rest is the token.
 */
export function formatKey(path: KeyPath): string {
  return path.map((part, index) => formatPart(part, index === 0)).join('')
}

function formatPart(part: string | number, isFirst: boolean): string {
  if (typeof part === 'number') return `[${part}]`
  if (!/^[\w-]+$/.test(part)) return `[${JSON.stringify(part.replace(/:.*$/s, ':...'))}]`
  return isFirst ? part : `.${part}`
}

/** Which half of a `key: value` pair a problem is about. */
type Part = 'key' | 'value'

export type Report = Problems['report']

export type Problems = ReturnType<typeof createProblems>

/** What is wrong with a configuration file, and where each part of it is. */
export function createProblems(document: Document, lines: LineCounter) {
  const variables = new WeakMap<object, readonly string[]>()
  const targets = targetsOf(document)
  const takenOut = new WeakSet<Node>()
  const broken = new Set<string>()
  const found: Problem[] = []

  function reportAt(offset: number, path: KeyPath, message: string): void {
    const { line, col } = lines.linePos(offset)
    found.push({ key: formatKey(path), line, column: col, message })
  }

  function isInsideBroken(path: KeyPath): boolean {
    return broken.has(JSON.stringify(path)) || (path.length > 0 && isInsideBroken(path.slice(0, -1)))
  }

  function variablesOf(path: KeyPath): readonly string[] {
    const { node, isWhole } = find(path)
    return variables.get((isWhole && resolved(node)) || document) ?? []
  }

  /** What an alias stands for, or the node itself; null for an alias whose anchor is not further up or was taken out. */
  function resolved(node: Node | null): Node | null {
    const target = isAlias(node) ? targets.get(node) : node
    return target && !takenOut.has(target) ? target : null
  }

  function find(path: KeyPath): NodeAtPath {
    let place: NodeAtPath = { node: document.contents, key: null, isWhole: true }
    for (const part of path) {
      const { key, value } = step(resolved(place.node), part)
      if (value === undefined) return { node: place.node, key: key ?? null, isWhole: false }
      place = { node: value as Node, key, isWhole: true }
    }
    return place
  }

  return {
    found,
    reportAt,
    variablesOf,
    lineAt: (offset: number) => lines.linePos(offset).line,
    resolved,
    /** Remembers that the nodes of a pair are left out: an alias of one of them has no anchor then. */
    takeOut: (pair: Pair) => visit(pair as unknown as Node, { Node: (_, node) => void takenOut.add(node) }),
    /** Remembers the environment variables in a value, so that its problems can name them. */
    noteVariables: (node: Node, names: readonly string[]) => variables.set(node, names),
    /** Notes a problem of the value at `path`, or of one that is missing there. */
    report(path: KeyPath, message: string, part: Part = 'value'): void {
      if (isInsideBroken(path)) return
      const { node, key } = find(path)
      const offset = offsetOf(part === 'key' ? (key ?? node) : node)
      reportAt(offset, path, message + origin(variablesOf(path)))
    },
    /** Reports, and drops later reports about the same value and its contents, which would only be consequences. */
    reportBroken(path: KeyPath, message: string): void {
      broken.add(JSON.stringify(path))
      reportAt(offsetOf(find(path).node), path, message)
    },
  }
}

interface NodeAtPath {
  /** The value at the path; for a missing or merged one, the mapping or list around it. */
  node: Node | null
  key: unknown
  /** False if `node` is only the part of the path that exists. */
  isWhole: boolean
}

function step(node: unknown, part: string | number): { key?: unknown; value?: unknown } {
  if (isSeq(node)) return { value: typeof part === 'number' ? node.items[part] : undefined }
  return (isMap(node) && node.items.find(({ key }) => keyText(key) === part)) || {}
}

/** By alias: the last node before it that has its name. The library looks through the whole document for each of them. */
function targetsOf(document: Document): Map<Node, Node> {
  const anchors = new Map<string, Node>()
  const targets = new Map<Node, Node>()
  visit(document, {
    Node(_, node) {
      if (!isAlias(node)) {
        if (node.anchor) anchors.set(node.anchor, node)
        return
      }
      const target = anchors.get(node.source)
      if (target) targets.set(node, target)
    },
  })
  return targets
}

/** A key is the text that was typed, also 007 or true. `__proto__` cannot be one: it has a meaning in JavaScript. */
export function keyText(key: unknown): string | null {
  if (!isScalar(key)) return null
  const name = typeof key.value === 'string' ? key.value : (key.source ?? '')
  return name === '' || name === '__proto__' ? null : name
}

export function offsetOf(node: unknown): number {
  return isNode(node) ? (node.range?.[0] ?? 0) : 0
}

function origin(variables: readonly string[]): string {
  return variables.length === 0 ? '' : ` The value comes from the environment (${variables.join(', ')}).`
}

/** The value at `path` in the file's plain values; undefined if there is none. */
export function rawAt(value: unknown, path: KeyPath): unknown {
  return path.reduce<unknown>(rawStep, value)
}

function rawStep(value: unknown, part: string | number): unknown {
  if (Array.isArray(value)) return typeof part === 'number' ? value[part] : undefined
  return isMapping(value) && Object.hasOwn(value, part) ? value[part] : undefined
}

export function isMapping(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The pairs of a mapping; none of anything else. */
export function rawEntries(value: unknown): [string, unknown][] {
  return isMapping(value) ? Object.entries(value) : []
}

/** The items of a list; none of anything else. */
export function rawItems(value: unknown): unknown[] {
  return Array.isArray(value) ? value : []
}
