import fs from 'node:fs'
import { UsageError } from '../../../errors.ts'
import type { JobFreshness } from '../../core/mirror-state.ts'
import type { CopyContents } from './build.ts'

// `mirror.db.json`: what is in the copy beside it, for those who must not open it to know, and how fresh that is by now.

export interface Numbers extends CopyContents {
  /** ISO 8601: the moment that the copy shows. */
  created_at: string
  /** When the mirror last had nothing that the copy lacks: `jobs` are of then. */
  current_at: string
  /** How long the copy took. */
  duration_ms: number
  /** See `MirrorState`. */
  contents: string
  /** Of the program. */
  version: string
  bytes: number
  sha256: string
  /** Of which mirror the copy was made, as hashes. */
  mirror: { id: string; place: string } | null
}

/** Null: an earlier version did not write it. */
export interface FoundNumbers extends Pick<Numbers, 'created_at' | 'mirror' | 'sha256' | 'jobs'> {
  current_at: string | null
  duration_ms: number | null
  contents: string | null
  /** All that is there, to be written again. */
  all: Record<string, unknown>
}

const { O_RDONLY, O_NONBLOCK, O_NOFOLLOW } = fs.constants
const AS_IT_IS = O_RDONLY | O_NONBLOCK | O_NOFOLLOW

/** What this program writes is far shorter. */
const MOST_BYTES = 16 * 1024 * 1024

export function numbersFile(copy: string): string {
  return `${copy}.json`
}

export function numbersText(numbers: Record<string, unknown> | Numbers): string {
  return `${JSON.stringify(numbers, null, 2)}\n`
}

/** Throws UsageError if something else stands there than numbers of a copy. */
export function assertNumbersOrNothing(file: string): void {
  if (!fs.lstatSync(file, { throwIfNoEntry: false }) || readNumbers(file)) return
  throw new UsageError(
    `${file} exists and was not written by this program, so it is left as it is, and nothing is published; publish under another name, or move it away`,
  )
}

/** Null if something else stands there, or nothing. */
export function readNumbers(file: string): FoundNumbers | null {
  const stat = fs.lstatSync(file, { throwIfNoEntry: false })
  if (!stat?.isFile() || stat.size > MOST_BYTES) return null
  try {
    // If a pipe or a link has just replaced it, this neither waits nor follows.
    const found: unknown = JSON.parse(fs.readFileSync(file, { encoding: 'utf8', flag: AS_IT_IS }))
    if (!isRecord(found) || !('sha256' in found) || !('created_at' in found)) return null
    const { created_at, current_at, duration_ms, contents, sha256, jobs, mirror } = found
    return {
      created_at: timeIn(created_at) ?? 'an unknown time',
      current_at: timeIn(current_at),
      duration_ms: typeof duration_ms === 'number' ? duration_ms : null,
      contents: typeof contents === 'string' ? contents : null,
      sha256: String(sha256),
      jobs: Array.isArray(jobs) ? jobs.filter(isRecord).map(freshnessIn) : [],
      mirror: isRecord(mirror) ? mirrorIn(mirror) : null,
      all: found,
    }
  } catch {
    return null
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}

function timeIn(value: unknown): string | null {
  const time = typeof value === 'string' ? Date.parse(value) : Number.NaN
  return Number.isNaN(time) ? null : new Date(time).toISOString()
}

function mirrorIn({ id, place }: Record<string, unknown>): Numbers['mirror'] {
  return typeof id === 'string' && typeof place === 'string' ? { id, place } : null
}

function freshnessIn(job: Record<string, unknown>): JobFreshness {
  return {
    organization_id: String(job.organization_id),
    organization: String(job.organization),
    collection: String(job.collection),
    as_of: timeIn(job.as_of),
    last_complete_at: timeIn(job.last_complete_at),
    fresh_as_of: timeIn(job.fresh_as_of),
  }
}
