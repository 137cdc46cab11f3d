import fs from 'node:fs'
import { UsageError } from '../../../errors.ts'
import type { CopyContents } from './build.ts'

// `mirror.db.json`: what stands in the copy beside it, for those who must not open it to know.

export interface Numbers extends CopyContents {
  /** ISO 8601: the moment that the copy shows. */
  created_at: string
  /** Of the program. */
  version: string
  bytes: number
  sha256: string
  /** Of which mirror the copy was made, as hashes. */
  mirror: { id: string; place: string } | null
}

/** What this program writes is far shorter. */
const MOST_BYTES = 16 * 1024 * 1024

export function numbersFile(copy: string): string {
  return `${copy}.json`
}

/** Throws UsageError if something else stands there than numbers of a copy. */
export function assertNumbersOrNothing(file: string): void {
  if (!fs.lstatSync(file, { throwIfNoEntry: false }) || readNumbers(file)) return
  throw new UsageError(
    `${file} exists and was not written by this program, so it is left as it is, and nothing is published; publish under another name, or move it away`,
  )
}

/** Null if something else stands there, or nothing. Earlier versions did not write of which mirror the copy was made. */
export function readNumbers(file: string): Pick<Numbers, 'created_at' | 'mirror'> | null {
  const stat = fs.lstatSync(file, { throwIfNoEntry: false })
  if (!stat?.isFile() || stat.size > MOST_BYTES) return null
  try {
    const found: unknown = JSON.parse(fs.readFileSync(file, 'utf8'))
    if (!isRecord(found) || !('sha256' in found) || !('created_at' in found)) return null
    const { created_at: at, mirror } = found
    return { created_at: timeIn(at), mirror: isRecord(mirror) ? mirrorIn(mirror) : null }
  } catch {
    return null
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}

function timeIn(value: unknown): string {
  const time = typeof value === 'string' ? Date.parse(value) : Number.NaN
  return Number.isNaN(time) ? 'an unknown time' : new Date(time).toISOString()
}

function mirrorIn({ id, place }: Record<string, unknown>): Numbers['mirror'] {
  return typeof id === 'string' && typeof place === 'string' ? { id, place } : null
}
