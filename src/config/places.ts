import type { LineCounter } from 'yaml'
import { formatKey, type KeyPath, type Problem } from './config-error.ts'

/** Which end of a `key: value` pair a problem is about. */
type Part = 'key' | 'value'

/** Notes a problem of what stands at `path`, or of what is missing there. */
export type Report = (path: KeyPath, message: string, part?: Part) => void

/** Positions in the text of the file. */
interface Offsets {
  key: number | null
  value: number
}

/** Where each key and value of the file stands, and what has been found wrong with them. */
export interface Places {
  mark: (path: KeyPath, offsets: Offsets) => void
  /** Remembers the environment variables that a value was made from, so that its problems can name them. */
  markVariables: (path: KeyPath, variables: readonly string[]) => void
  variablesOf: (path: KeyPath) => readonly string[]
  lineAt: (offset: number) => number
  report: Report
  /** Reports, and drops later reports about the same value and what is in it: they would only be consequences. */
  reportBroken: (path: KeyPath, message: string) => void
  reportAt: (offset: number, path: KeyPath, message: string) => void
  problems: Problem[]
}

export function createPlaces(lines: LineCounter): Places {
  const offsets = new Map<string, Offsets>()
  const variables = new Map<string, readonly string[]>()
  const broken = new Set<string>()
  const problems: Problem[] = []

  function reportAt(offset: number, path: KeyPath, message: string): void {
    const { line, col } = lines.linePos(offset)
    problems.push({ key: formatKey(path), line, column: col, message })
  }

  /** Of what is missing: the place of the mapping or list that should hold it. */
  function offsetOf(path: KeyPath, part: Part): number {
    const found = offsets.get(identity(path))
    if (found) return part === 'key' ? (found.key ?? found.value) : found.value
    return path.length === 0 ? 0 : offsetOf(path.slice(0, -1), 'value')
  }

  function isInsideBroken(path: KeyPath): boolean {
    return broken.has(identity(path)) || (path.length > 0 && isInsideBroken(path.slice(0, -1)))
  }

  function variablesOf(path: KeyPath): readonly string[] {
    return variables.get(identity(path)) ?? []
  }

  return {
    mark: (path, places) => offsets.set(identity(path), places),
    markVariables: (path, names) => variables.set(identity(path), names),
    variablesOf,
    lineAt: (offset) => lines.linePos(offset).line,
    report: (path, message, part = 'value') => {
      if (!isInsideBroken(path)) reportAt(offsetOf(path, part), path, message + origin(variablesOf(path)))
    },
    reportBroken: (path, message) => {
      broken.add(identity(path))
      reportAt(offsetOf(path, 'value'), path, message)
    },
    reportAt,
    problems,
  }
}

function identity(path: KeyPath): string {
  return JSON.stringify(path)
}

function origin(variables: readonly string[]): string {
  return variables.length === 0 ? '' : ` The value comes from the environment (${variables.join(', ')}).`
}
