import { createHash } from 'node:crypto'
import fs from 'node:fs'
import { open } from 'node:fs/promises'
import { InterruptedError, UsageError } from '../../../errors.ts'
import type { JobFreshness, MirrorState } from '../../core/publication.ts'
import { msOf, one, type Rule, type StoredTime } from '../../core/sql.ts'
import { type Connection, runRule } from '../driver.ts'
import { translatingErrors } from '../file/open.ts'
import type { CopyContents } from './build.ts'
import { finishFile, makeUnfinished, numbersFile, type Place, syncFolder } from './place.ts'

// `mirror.db.json`: what is in the copy beside it, so that nobody has to open that to know, and how fresh it is by now.

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

export function numbersText(numbers: Record<string, unknown> | Numbers): string {
  return `${JSON.stringify(numbers, null, 2)}\n`
}

/** Throws UsageError if there is a file that does not hold numbers of a copy. */
export function assertNumbersOrNothing(file: string): void {
  if (!fs.lstatSync(file, { throwIfNoEntry: false }) || readNumbers(file)) return
  throw new UsageError(
    `${file} exists and was not written by this program, so it is left as it is, and nothing is published; publish under another name, or move it away`,
  )
}

/** The numbers in the file; null if it holds something else, or does not exist. */
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

// Two mirrors with one `publish` would replace each other's data: the numbers beside a copy say of which mirror it was made.

/** The mirror of a copy. */
export interface Origin {
  /** The same for a mirror that was moved, or restored from a backup; it reveals nothing. */
  id: string
  /** The place of the mirror, as a hash: the same for a new mirror in that place. */
  place: string
  /** When the mirror was filled first, epoch milliseconds; null while it is empty. */
  since: number | null
}

/** @param where The mirror's file, or its schema on a server. */
export function originOf(where: string, { salt, since }: { salt: string; since: number | null }): Origin {
  return { id: shortHash(`mirror\0${salt}`), place: shortHash(where), since }
}

function shortHash(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 16)
}

/** The mirror's own; null for one that has just been made. */
export function* originAt(where: string): Rule<Origin | null> {
  const row = yield* one<{ salt: string; first: StoredTime | null }>(`
    SELECT value AS salt, (SELECT min(first_seen_at) FROM sync_columns) AS first
    FROM sync_settings
    WHERE name = 'salt'
  `)
  return row && originOf(where, { salt: row.salt, since: row.first === null ? null : msOf(row.first) })
}

export function originIn(connection: Connection): Origin | null {
  return runRule(connection, originAt(connection.name))
}

/** Throws UsageError if the file is another mirror's. One that says nothing of its mirror is replaced. */
export function assertOwnCopy(named: string, { file, before }: Place, origin: Origin): void {
  const numbers = before && readNumbers(numbersFile(file))
  if (!numbers || isOwn(numbers, origin)) return
  throw new UsageError(
    `${named} is the copy of another mirror, made at ${numbers.created_at}, so it is left as it is, and nothing is published. Give ` +
      `each configuration a "publish" of its own. If that mirror is no longer used, delete ${named}`,
  )
}

function isOwn({ mirror, created_at: at }: FoundNumbers, own: Origin): boolean {
  if (mirror === null || mirror.id === own.id) return true
  // Made before this mirror was: by a mirror that was here and was deleted.
  return mirror.place === own.place && (own.since === null || Date.parse(at) < own.since)
}

// How fresh a published file is by now, as NAME.json says. It is read and written without the file; the sha256 in it shows that both belong together.

/** How fresh a published file is by the NAME.json beside it; null if there is none, or it is about another file. */
export async function freshnessBeside(copy: string, signal: AbortSignal): Promise<JobFreshness[] | null> {
  try {
    const file = fs.realpathSync(copy)
    const numbers = readNumbers(numbersFile(file))
    if (numbers?.all.bytes !== fs.statSync(file).size) return null
    const hashed = await hashFile(file, signal)
    return hashed?.sha256 === numbers.sha256 ? numbers.jobs : null
  } catch (error) {
    // Whoever opens the copy reports what is wrong with it.
    if (error instanceof Error && 'syscall' in error) return null
    throw error
  }
}

/** A file as it was when it was hashed. */
export interface HashedFile {
  /** Without links. */
  file: string
  sha256: string
  stat: fs.Stats
}

/** Whether a file is still the one that was hashed: neither replaced nor written to. */
export function isUnchanged({ file, stat }: HashedFile): boolean {
  const now = fs.statSync(file, { throwIfNoEntry: false })
  return now !== undefined && IDENTITY.every((name) => now[name] === stat[name])
}

const IDENTITY = ['dev', 'ino', 'size', 'mtimeMs', 'ctimeMs'] as const

const PIECE_BYTES = 1 << 20

/** Hashes a file; a gigabyte takes about a second. Null if there is no regular file. Throws InterruptedError after the signal. */
export async function hashFile(file: string, signal: AbortSignal): Promise<HashedFile | null> {
  // Before, since opening a device may have effects; after, since the file may have been replaced.
  if (!fs.statSync(file, { throwIfNoEntry: false })?.isFile()) return null
  // Without O_NONBLOCK, opening a pipe waits for a process that writes into it.
  const handle = await open(file, fs.constants.O_RDONLY | fs.constants.O_NONBLOCK)
  try {
    const stat = await handle.stat()
    if (!stat.isFile()) return null
    const hash = createHash('sha256')
    for await (const piece of handle.createReadStream({ autoClose: false, highWaterMark: PIECE_BYTES })) {
      if (signal.aborted)
        throw new InterruptedError(`stopped while ${file} was compared with ${numbersFile(file)}`)
      hash.update(piece as Buffer)
    }
    return { file, sha256: hash.digest('hex'), stat }
  } finally {
    await handle.close()
  }
}

/**
 * Writes NAME.json again, for a file that still shows all that the mirror holds. Returns false if NAME.json is about another file, and leaves it;
 * also if another process replaced the file at this moment: NAME.json may then be ours. Throws MirrorError.
 * @param hashed The published file.
 * @param at When the mirror held this state, epoch milliseconds.
 */
export function writeFreshness(
  hashed: HashedFile,
  state: MirrorState,
  at: number,
  lockName: string,
): boolean {
  const { file } = hashed
  return translatingErrors(file, () => {
    const numbers = numbersFile(file)
    const found = readNumbers(numbers)
    if (found?.sha256 !== hashed.sha256 || found.contents !== state.contents) return false
    const unfinished = makeUnfinished(numbers, lockName, 0o600)
    try {
      const current = new Date(at)
      const text = numbersText({ ...found.all, current_at: current.toISOString(), jobs: state.jobs })
      fs.writeFileSync(unfinished, text)
      // For those who may read the file.
      finishFile(unfinished, null, hashed.stat, current)
      if (!isUnchanged(hashed)) return false
      fs.renameSync(unfinished, numbers)
      syncFolder(numbers)
      return isUnchanged(hashed)
    } finally {
      fs.rmSync(unfinished, { force: true })
    }
  })
}
