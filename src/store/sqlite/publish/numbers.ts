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
}

/** What this program writes is far shorter. */
const MOST_BYTES = 16 * 1024 * 1024

export function numbersFile(copy: string): string {
  return `${copy}.json`
}

/** Throws UsageError if something else stands there than numbers of a copy. */
export function assertNumbersOrNothing(file: string): void {
  const stat = fs.lstatSync(file, { throwIfNoEntry: false })
  if (!stat || (stat.isFile() && stat.size <= MOST_BYTES && isNumbers(file))) return
  throw new UsageError(
    `${file} exists and was not written by this program, so it is left as it is, and nothing is published; publish under another name, or move it away`,
  )
}

function isNumbers(file: string): boolean {
  try {
    const found: unknown = JSON.parse(fs.readFileSync(file, 'utf8'))
    return typeof found === 'object' && found !== null && 'sha256' in found && 'created_at' in found
  } catch {
    return false
  }
}
