import fs from 'node:fs'
import path from 'node:path'
import { holdLock, leasesFolder, lockState } from '../file/lock-file.ts'
import { numbersFile } from './numbers.ts'

// A file while it is made: a copy, its numbers, an export. Other users may write to its folder: it has a name that nobody can guess, and
// nothing is deleted there that is not a file of this user by its name and by its kind.

/** `.mirror.db.12345-9f86d081d6c1.unfinished`: between the dots the name of a lock, which its process holds if it can. */
const UNFINISHED = /^\.(.+)\.(\d{1,10}-[0-9a-f]{12})\.unfinished(?:-journal)?$/

/** Makes an empty file beside another one. */
export function makeUnfinished(file: string, lock: string, mode: number): string {
  const unfinished = unfinishedName(file, lock)
  const { O_RDWR, O_CREAT, O_EXCL, O_NOFOLLOW } = fs.constants
  fs.closeSync(fs.openSync(unfinished, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, mode))
  return unfinished
}

/** The mode that a new file has here, as umask says. What is written is its owner's alone until it is whole. */
export function modeOfNew(file: string, lock: string): number {
  const unfinished = makeUnfinished(file, lock, 0o666)
  const { mode } = fs.lstatSync(unfinished)
  fs.rmSync(unfinished)
  return mode & 0o777
}

function unfinishedName(file: string, lock: string): string {
  return path.join(path.dirname(file), `.${path.basename(file)}.${lock}.unfinished`)
}

/** Deletes what the process with this lock has left of a copy that was to go to `file`. */
export function removeUnfinished(file: string, lock: string): void {
  const [copy, numbers] = [unfinishedName(file, lock), unfinishedName(numbersFile(file), lock)]
  for (const one of [copy, `${copy}-journal`, numbers]) fs.rmSync(one, { force: true })
}

export interface UnfinishedLock {
  /** The folder of the mirror's locks. */
  folder: string
  release(): void
}

/** Holds the lock of this process; null for who may only read the mirror. */
export function lockIfPossible(mirror: string, name: string): UnfinishedLock | null {
  try {
    const { release } = holdLock(mirror, name)
    return { folder: leasesFolder(mirror), release }
  } catch {
    return null
  }
}

/** A process that holds no lock may still be at work on a younger file. */
const SWEPT_AFTER_MS = 3_600_000

/**
 * Deletes what killed processes of this user left beside a file: at once with a lock of this process, since it then sees theirs. `own`:
 * the stat of a file of ours, just made.
 */
export function sweepUnfinished(
  lock: Pick<UnfinishedLock, 'folder'> | null,
  file: string,
  own: fs.Stats,
): void {
  const folder = path.dirname(file)
  const names = [file, numbersFile(file)].map((name) => path.basename(name))
  for (const name of fs.readdirSync(folder)) {
    const [, of, theirs] = UNFINISHED.exec(name) ?? []
    if (of === undefined || theirs === undefined || !names.includes(of)) continue
    const stat = fs.lstatSync(path.join(folder, name), { throwIfNoEntry: false })
    if (!stat?.isFile() || stat.ino === own.ino || stat.uid !== own.uid) continue
    if (isLeft(lock?.folder ?? null, theirs, own.mtimeMs - stat.mtimeMs))
      fs.rmSync(path.join(folder, name), { force: true })
  }
}

function isLeft(locks: string | null, lock: string, age: number): boolean {
  try {
    const state = locks === null ? 'none' : lockState(locks, lock)
    return state === 'free' || (state === 'none' && age > SWEPT_AFTER_MS)
  } catch {
    return false
  }
}
