import { createHash } from 'node:crypto'
import fs from 'node:fs'
import { open } from 'node:fs/promises'
import { z } from 'zod'
import { InterruptedError, UsageError } from '../../../errors.ts'
import type { JobFreshness, MirrorState } from '../../core/publication.ts'
import { msOf, one, type Rule, type StoredTime } from '../../core/sql.ts'
import { type Connection, runRule } from '../driver.ts'
import { translatingErrors } from '../file/open.ts'
import { finishFile, makeUnfinished, numbersFile, type Place, syncFolder } from './place.ts'

// `mirror.db.json`: what is in the copy beside it, so that nobody has to open that to know, and how fresh it is by now.

/** ISO 8601. */
const TIME = z.iso.datetime().nullable().catch(null)

const FRESHNESS = z.object({
  organization_id: z.string(),
  organization: z.string(),
  collection: z.string(),
  as_of: TIME,
  last_complete_at: TIME,
  fresh_as_of: TIME,
})

/** Null, or empty: an earlier version did not write it, or somebody has changed it. */
const NUMBERS = z.looseObject({
  /** The moment that the copy shows. It has to be there: a file of somebody else may hold a `sha256`. */
  created_at: z.string().pipe(z.iso.datetime().catch('an unknown time')),
  /** When the mirror last had nothing that the copy lacks: `jobs` are of then. */
  current_at: TIME,
  /** Of the program. */
  version: z.string().catch(''),
  bytes: z.number().nullable().catch(null),
  /** By table. */
  rows: z.record(z.string(), z.number()).catch({}),
  jobs: z.array(FRESHNESS).catch([]),
  sha256: z.string(),
  /** Of which mirror the copy was made, as hashes. */
  mirror: z.object({ id: z.string(), place: z.string() }).nullable().catch(null),
  /** See `MirrorState`. */
  contents: z.string().nullable().catch(null),
  /** How long the copy took. */
  duration_ms: z.number().nullable().catch(null),
})

export type Numbers = z.infer<typeof NUMBERS>

const { O_RDONLY, O_NONBLOCK, O_NOFOLLOW } = fs.constants
const AS_IT_IS = O_RDONLY | O_NONBLOCK | O_NOFOLLOW

/** What this program writes is far shorter. */
const MOST_BYTES = 16 * 1024 * 1024

export function numbersText(numbers: Numbers): string {
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
export function readNumbers(file: string): Numbers | null {
  const stat = fs.lstatSync(file, { throwIfNoEntry: false })
  if (!stat?.isFile() || stat.size > MOST_BYTES) return null
  try {
    // If a pipe or a link has just replaced it, this neither waits nor follows.
    const found: unknown = JSON.parse(fs.readFileSync(file, { encoding: 'utf8', flag: AS_IT_IS }))
    return NUMBERS.parse(found)
  } catch {
    return null
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
function* originAt(where: string): Rule<Origin | null> {
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

function isOwn({ mirror, created_at: at }: Numbers, own: Origin): boolean {
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
    if (numbers?.bytes !== fs.statSync(file).size) return null
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
      const text = numbersText({ ...found, current_at: current.toISOString(), jobs: state.jobs })
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
