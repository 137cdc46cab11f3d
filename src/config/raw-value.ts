import type { KeyPath } from './config-error.ts'

/** A mapping of the file before it is known to be a valid one. */
export type RawMap = Record<string, unknown>

export function isRawMap(value: unknown): value is RawMap {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** What stands at `path`; undefined when nothing does. */
export function rawAt(value: unknown, path: KeyPath): unknown {
  return path.reduce<unknown>(rawStep, value)
}

function rawStep(value: unknown, part: string | number): unknown {
  if (Array.isArray(value)) return typeof part === 'number' ? value[part] : undefined
  return isRawMap(value) && Object.hasOwn(value, part) ? value[part] : undefined
}

/** The pairs of a mapping; none of anything else. */
export function rawEntries(value: unknown): [string, unknown][] {
  return isRawMap(value) ? Object.entries(value) : []
}

/** The items of a list; none of anything else. */
export function rawItems(value: unknown): unknown[] {
  return Array.isArray(value) ? value : []
}
