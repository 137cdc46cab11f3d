import fs from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import path from 'node:path'
import { pipeline } from 'node:stream/promises'
import type { Config } from '../../config/config.ts'
import { UsageError } from '../../errors.ts'
import { leasesFolder } from '../../store/sqlite/file/lock-file.ts'
import {
  belongsToAnother,
  finishFile,
  lockIfPossible,
  makeUnfinished,
  modeOfNew,
  sweepUnfinished,
  withoutLinks,
} from '../../store/sqlite/publish/place.ts'

/** A file that a command writes for an option. */
export interface OutputFile {
  /** Its name in messages: `--output /home/you/orders.csv`. */
  shown: string
  /** The absolute path of the file itself, not of a link to it; of a device or a pipe as it was named. */
  place: string
  /** Whether it can be replaced whole. A device or a pipe (`/dev/stderr`) cannot. */
  isRegular: boolean
  /** The file that exists already. */
  before: fs.Stats | null
}

/** A file while it is written. */
export interface Unfinished {
  /** As `newLockName` makes it. */
  lockName: string
  /** A mirror's file, beside which the lock is held; null: there is none. */
  mirror: string | null
}

/** Looks at the file of `option`, an absolute path. Throws UsageError for a folder, and for a file that cannot be reached. */
export function outputFile(option: string, file: string): OutputFile {
  const shown = `${option} ${file}`
  try {
    const named = withoutLinks(file)
    const before = fs.statSync(file, { throwIfNoEntry: false }) ?? null
    if (before?.isDirectory()) throw new UsageError(`${shown} is a folder; name a file in it`)
    // A pipe without a name of its own (`/dev/fd/63`) can only be opened by its link.
    const place = before && !before.isFile() ? file : named
    const folder = path.dirname(place)
    if (!before && !fs.existsSync(folder))
      throw new UsageError(`${shown}: there is no folder ${folder}; make it, or name a file in another one`)
    return { shown, place, isRegular: before?.isFile() ?? true, before }
  } catch (error) {
    throw explained(shown, error)
  }
}

/** Throws UsageError if the folder of an output is not there, or this user may not write to it. */
export function assertFolder({ shown, place }: OutputFile): void {
  try {
    fs.accessSync(path.dirname(place), fs.constants.W_OK)
  } catch (error) {
    throw explained(shown, error)
  }
}

/**
 * Throws UsageError if an output would replace a file that the program needs: the file that is read and those beside it, the
 * published copy, the configuration, a token; through links, too.
 */
export function assertMayReplace(
  { shown, place }: OutputFile,
  database: string,
  config: Pick<Config, 'publish' | 'file' | 'organizations'> | null,
): void {
  const mirrors = [database, realPath(database)]
  const tokenFiles = config?.organizations.map((organization) => organization.tokenFile()) ?? []
  const needed = [
    ...mirrors.flatMap((one) => [one, `${one}-wal`, `${one}-shm`, `${one}-journal`]),
    ...[config?.publish, config?.file, ...tokenFiles].filter((one) => typeof one === 'string'),
  ]
  const isNeeded = needed.some((one) => isSameFile(place, one))
  const isInOwners = mirrors.some((one) => isInside(place, realPath(`${one}-owners`)))
  if (isNeeded || isInOwners)
    throw new UsageError(
      `${shown}: this is a file of the mirror, its configuration or a token; choose another one`,
    )
}

/**
 * Writes the whole file or, after an error or the signal, nothing. Throws UsageError, and AbortError on the signal.
 * @param until The file's name until it is whole.
 */
export async function writeOutput(
  output: OutputFile,
  pieces: Iterable<string | Uint8Array> | AsyncIterable<string | Uint8Array>,
  until: Unfinished,
  signal?: AbortSignal,
): Promise<void> {
  try {
    if (!output.isRegular) return await pipeline(pieces, fs.createWriteStream(output.place))
    await replaceWhole(output, until, (handle) =>
      pipeline(pieces, handle.createWriteStream(), signal ? { signal } : {}),
    )
  } catch (error) {
    throw explained(output.shown, error)
  }
}

/** Writes beside the file and moves the result there, so that a reader never finds half of it. */
async function replaceWhole(
  { shown, place, before }: OutputFile,
  { lockName, mirror }: Unfinished,
  write: (handle: FileHandle) => Promise<void>,
): Promise<void> {
  const mode = before ? null : modeOfNew(place, lockName)
  const unfinished = makeUnfinished(place, lockName, 0o600)
  const lock = mirror !== null && hasLocks(mirror) ? lockIfPossible(mirror, lockName) : null
  try {
    const own = fs.lstatSync(unfinished)
    sweepUnfinished(lock, place, own)
    if (before && belongsToAnother(before, [own, fs.statSync(path.dirname(place))]))
      throw new UsageError(
        `${shown} belongs to another user, who would get what is written: name another file`,
      )
    const handle = await open(unfinished, fs.constants.O_WRONLY | fs.constants.O_NOFOLLOW)
    await write(handle)
    finishFile(unfinished, mode, before, null)
    fs.renameSync(unfinished, place)
  } catch (error) {
    fs.rmSync(unfinished, { force: true })
    throw error
  } finally {
    lock?.release()
  }
}

/** Whether a mirror has lock files beside it; a copy has none. */
function hasLocks(mirror: string): boolean {
  return fs.existsSync(mirror) && fs.existsSync(leasesFolder(mirror))
}

function explained(shown: string, error: unknown): unknown {
  const isOfFiles = error instanceof Error && 'syscall' in error
  return isOfFiles ? new UsageError(`${shown} cannot be written: ${error.message}`) : error
}

function isSameFile(one: string, other: string): boolean {
  if (realPath(one) === realPath(other)) return true
  const [left, right] = [one, other].map(statOf)
  return left != null && right != null && left.dev === right.dev && left.ino === right.ino
}

function statOf(file: string): fs.Stats | undefined {
  try {
    return fs.statSync(file, { throwIfNoEntry: false })
  } catch {
    // A file that cannot be reached cannot be replaced either.
    return undefined
  }
}

function isInside(file: string, folder: string): boolean {
  const way = path.relative(folder, file)
  return way === '' || (!path.isAbsolute(way) && way.split(path.sep)[0] !== '..')
}

/** The path without links, also of a file that does not exist: SQLite makes and deletes the WAL of a mirror. */
function realPath(file: string): string {
  try {
    return withoutLinks(file)
  } catch {
    return file
  }
}
