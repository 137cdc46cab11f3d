import { type Document, isAlias, isMap, isNode, isScalar, isSeq, type Node } from 'yaml'
import { formatKey, type KeyPath, type Problem } from './config-error.ts'
import type { YamlFile } from './yaml-file.ts'

/** Which end of a `key: value` pair a problem is about. */
type Part = 'key' | 'value'

/** Notes a problem of the value at `path`, or of one that is missing there. */
export type Report = (path: KeyPath, message: string, part?: Part) => void

/** What is wrong with a configuration file, and where each part of it is. */
export interface Problems {
  found: Problem[]
  report: Report
  /** Reports, and drops later reports about the same value and what is in it: they would only be consequences. */
  reportBroken: (path: KeyPath, message: string) => void
  reportAt: (offset: number, path: KeyPath, message: string) => void
  lineAt: (offset: number) => number
  /** Remembers the environment variables that a value was made from, so that its problems can name them. */
  noteVariables: (node: Node, variables: readonly string[]) => void
  variablesOf: (path: KeyPath) => readonly string[]
}

export function createProblems({ document, lines }: YamlFile): Problems {
  const variables = new WeakMap<object, readonly string[]>()
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
    const { node, isWhole } = find(document, path)
    return (isWhole && node && variables.get(resolved(document, node))) || []
  }

  return {
    found,
    reportAt,
    variablesOf,
    lineAt: (offset) => lines.linePos(offset).line,
    noteVariables: (node, names) => variables.set(node, names),
    report(path, message, part = 'value') {
      if (isInsideBroken(path)) return
      const { node, key } = find(document, path)
      const offset = offsetOf(part === 'key' ? (key ?? node) : node)
      reportAt(offset, path, message + origin(variablesOf(path)))
    },
    reportBroken(path, message) {
      broken.add(JSON.stringify(path))
      reportAt(offsetOf(find(document, path).node), path, message)
    },
  }
}

interface Found {
  /** The value at the path; of a missing one, or one that a merge key brings in, the mapping or list that it belongs to. */
  node: Node | null
  key: unknown
  isWhole: boolean
}

function find(document: Document, path: KeyPath): Found {
  let found: Found = { node: document.contents, key: null, isWhole: true }
  for (const part of path) {
    const { key, value } = step(resolved(document, found.node), part)
    if (value === undefined) return { node: found.node, key: key ?? null, isWhole: false }
    found = { node: value as Node, key, isWhole: true }
  }
  return found
}

function step(node: unknown, part: string | number): { key?: unknown; value?: unknown } {
  if (isSeq(node)) return { value: typeof part === 'number' ? node.items[part] : undefined }
  return (isMap(node) && node.items.find(({ key }) => nameOf(key) === part)) || {}
}

function resolved(document: Document, node: Node | null): object {
  return (isAlias(node) ? node.resolve(document) : node) ?? {}
}

/** A key is the text that was typed, also 007 or true. `__proto__` is none: JavaScript gives it a meaning of its own. */
export function nameOf(key: unknown): string | null {
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
