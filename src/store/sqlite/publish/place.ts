import { createHash } from 'node:crypto'
import fs from 'node:fs'
import path from 'node:path'
import process from 'node:process'
import { UsageError } from '../../../errors.ts'
import { inspectHeader } from '../file/header.ts'
import { holdLock, leasesFolder, lockState } from '../file/lock-file.ts'
import { COPY_ID, giveTo, makeFolder, type Ownership } from '../file/open.ts'

// Where a copy may be put, who owns it, and the unfinished files beside it; the rename that replaces the older copy is in publish.ts. Other
// users may write to its folder.

/** The file that a copy is to replace. */
export interface Place {
  /** Without links. */
  file: string
  before: fs.Stats | null
}

/** As many links as Linux follows; this also ends a circle of links. */
const MOST_LINKS = 40

/**
 * The path without links, also of a file that does not exist. Throws UsageError for a link or a pipe that another user has put into a folder
 * that all may write to (/tmp): he would choose where the data goes, or receive it. Linux itself refuses them only where
 * `fs.protected_symlinks` and `fs.protected_fifos` are set.
 */
export function withoutLinks(named: string): string {
  let place = path.parse(named).root
  let rest = partsOf(named)
  for (let links = 0; rest[0] !== undefined; rest = rest.slice(1)) {
    const next = path.join(place, rest[0])
    const found = fs.lstatSync(next, { throwIfNoEntry: false })
    if (!found) return path.join(place, ...rest)
    const isLink = found.isSymbolicLink()
    if ((isLink || found.isFIFO()) && isTrap(found, fs.statSync(place)))
      throw new UsageError(
        `${next} is ${isLink ? 'a link' : 'a pipe'} of another user in a folder that others may write to, so nothing is written to it: name another file`,
      )
    if (!isLink) place = next
    else if (++links > MOST_LINKS) return named
    else {
      rest = [rest[0], ...partsOf(path.resolve(place, fs.readlinkSync(next))), ...rest.slice(1)]
      place = path.parse(named).root
    }
  }
  return place
}

function partsOf(file: string): string[] {
  return file.split(path.sep).filter((part) => part !== '')
}

function isTrap({ uid }: fs.Stats, folder: fs.Stats): boolean {
  return (folder.mode & 0o022) !== 0 && uid !== folder.uid && uid !== process.getuid?.()
}

/** Throws UsageError if the target is anything but a copy that no program writes to. Changes nothing. */
export function inspectPlace(named: string): Place {
  const place = withoutLinks(path.resolve(named))
  const before = fs.statSync(named, { throwIfNoEntry: false }) ?? null
  const file = before ? place : named
  if (before && !isCopyFile(file))
    throw new UsageError(
      `${named} exists and is not a copy of a mirror, so it is left as it is; name another file, or move it away`,
    )
  if (!before && fs.lstatSync(named, { throwIfNoEntry: false }))
    throw new UsageError(`${named} is a link that leads nowhere; name another file, or delete it`)
  // SQLite would take such a file for a part of the new copy.
  const beside = ['-journal', '-wal'].map((end) => file + end).find((one) => bytesOf(one) > 0)
  if (beside !== undefined)
    throw new UsageError(
      `a program has written to ${named} and left ${beside}: close it, or delete that file, and copy again`,
    )
  return { file, before }
}

/** Call it while this process does not have the file open: closing any handle of it drops SQLite's locks. */
export function isCopyFile(file: string): boolean {
  try {
    const header = inspectHeader(file)
    return header.kind === 'sqlite' && header.applicationId === COPY_ID
  } catch {
    return false
  }
}

function bytesOf(file: string): number {
  return fs.lstatSync(file, { throwIfNoEntry: false })?.size ?? 0
}

/** Stays free on the disk for other things. */
const RESERVE_BYTES = 64 * 1024 * 1024

/** How many bytes a copy may have; null if there is not enough room for it. */
export function roomFor(mirror: string, { file, before }: Place): number | null {
  const { bavail, bsize } = fs.statfsSync(path.dirname(file))
  const most = bavail * bsize - RESERVE_BYTES
  // A copy has each item twice, and indexes for everything.
  const expected = before
    ? before.size * 1.1
    : 2 * (bytesOf(fs.realpathSync(mirror)) + bytesOf(`${mirror}-wal`))
  return most > expected ? most : null
}

/**
 * Makes a folder and its missing parents, open to those who may read files of this mode, whatever umask says. Gives it to the owner of the
 * mirror, as far as this user may: the first sync may be root's.
 */
export function makePublicFolder(folder: string, mode: number, mirror: Ownership | null): void {
  if (fs.existsSync(folder)) return
  makePublicFolder(path.dirname(folder), mode, mirror)
  makeFolder(folder)
  const handle = fs.openSync(folder, fs.constants.O_DIRECTORY | fs.constants.O_NOFOLLOW)
  try {
    const { gid, mode: bits } = fs.fstatSync(handle)
    if (mirror) giveTo(handle, { uid: mirror.uid, gid: bits & SETGID ? gid : mirror.gid })
    const readable = mode & 0o444
    fs.fchmodSync(handle, (bits & SETGID) | 0o700 | readable | (readable >> 2))
  } finally {
    fs.closeSync(handle)
  }
}

/** The bit of a folder by which new files in it get its group. */
const SETGID = 0o2000

/**
 * Whether a file is another user's trap rather than a place for ours: in a folder for all (/tmp) its owner would get what is written.
 * `owners`: this user, and the folder, whose owner may have put it there; he can replace it anyway.
 */
export function belongsToAnother(
  before: Pick<fs.Stats, 'uid'>,
  owners: readonly Pick<fs.Stats, 'uid'>[],
): boolean {
  return owners.every(({ uid }) => uid !== before.uid)
}

/** Who gets the published file: the mirror's owner; the group of the file that it replaces, of its folder, or of the mirror. */
export function ownershipOfPublic(mirror: Ownership, { file, before }: Place): Ownership {
  const folder = fs.statSync(path.dirname(file))
  const gid = before?.gid ?? (folder.mode & SETGID ? folder.gid : mirror.gid)
  return { uid: mirror.uid, gid }
}

/**
 * Gives a written file its owner, as far as this user may, its rights and its time, and waits for the disk.
 * @param mode Null: the mode of `like`, or what umask has made it.
 * @param at The moment that it shows; null: now.
 */
export function finishFile(
  file: string,
  mode: number | null,
  like: (Ownership & { mode?: number }) | null,
  at: Date | null,
): void {
  const handle = fs.openSync(file, fs.constants.O_RDWR | fs.constants.O_NOFOLLOW)
  try {
    const isGroup = like === null || giveTo(handle, like)
    // If the file could not be given to the wanted group, the group that it has gets no rights.
    const wanted = mode ?? like?.mode
    if (wanted !== undefined) fs.fchmodSync(handle, wanted & (isGroup ? 0o777 : 0o707))
    if (at) fs.futimesSync(handle, at, at)
    fs.fsyncSync(handle)
  } finally {
    fs.closeSync(handle)
  }
}

/** Makes a rename last through a loss of power. */
export function syncFolder(file: string): void {
  const handle = fs.openSync(path.dirname(file), fs.constants.O_RDONLY | fs.constants.O_DIRECTORY)
  try {
    fs.fsyncSync(handle)
  } finally {
    fs.closeSync(handle)
  }
}

export function sha256(file: string): string {
  const [hash, bytes] = [createHash('sha256'), Buffer.alloc(1 << 20)]
  const handle = fs.openSync(file, fs.constants.O_RDONLY | fs.constants.O_NOFOLLOW)
  try {
    for (let read = -1; read !== 0; ) {
      read = fs.readSync(handle, bytes)
      hash.update(bytes.subarray(0, read))
    }
  } finally {
    fs.closeSync(handle)
  }
  return hash.digest('hex')
}

// A file while it is made: a copy, its numbers, an export. Other users may write to its folder: so it has a name that nobody can guess, and only
// regular files of this user with such names are deleted there.

/** `.mirror.db.12345-9f86d081d6c1.unfinished`: between the dots the name of a lock, which its process holds if it can. */
const UNFINISHED = /^\.(.+)\.(\d{1,10}-[0-9a-f]{12})\.unfinished(?:-journal)?$/

/** The numbers beside a copy: see numbers.ts. */
export function numbersFile(copy: string): string {
  return `${copy}.json`
}

/** Makes an empty file beside another one. */
export function makeUnfinished(file: string, lock: string, mode: number): string {
  const unfinished = unfinishedName(file, lock)
  const { O_RDWR, O_CREAT, O_EXCL, O_NOFOLLOW } = fs.constants
  fs.closeSync(fs.openSync(unfinished, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, mode))
  return unfinished
}

/** The mode that umask gives a new file here. Only its owner may read the file until it is whole, so it cannot be made with that mode. */
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

/** Takes a lock with the name of this process among the mirror's lock files; null if this user may only read the mirror. */
export function lockIfPossible(mirror: string, name: string): { folder: string; release(): void } | null {
  try {
    const { release } = holdLock(mirror, name)
    return { folder: leasesFolder(mirror), release }
  } catch {
    return null
  }
}

/** A younger file may belong to a process that holds no lock and is still at work on it. */
const SWEPT_AFTER_MS = 3_600_000

/**
 * Deletes what killed processes of this user left beside a file. With a lock of its own this process sees theirs, and deletes at once; without,
 * only what is old. `own`: the stat of a file that this process has just made.
 */
export function sweepUnfinished(lock: { folder: string } | null, file: string, own: fs.Stats): void {
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
