import { createHash } from 'node:crypto'
import fs from 'node:fs'
import path from 'node:path'
import { UsageError } from '../../../errors.ts'
import { inspectHeader } from '../file/header.ts'
import { leasesFolder, lockState } from '../file/lock-file.ts'
import { COPY_ID } from '../file/open.ts'

// Where a copy is put. Other users may write to its folder: the new file gets a name that nobody can guess, and nothing is opened
// or deleted there that is not a file of ours by its name and by its kind.

/** The file that a copy is to replace. */
export interface Place {
  /** Without links. */
  file: string
  before: fs.Stats | null
}

/** Throws UsageError where something else stands than a copy that nobody writes to. Changes nothing. */
export function inspectPlace(named: string): Place {
  const before = fs.statSync(named, { throwIfNoEntry: false }) ?? null
  const file = before ? fs.realpathSync(named) : named
  if (before && !isCopyFile(file))
    throw new UsageError(
      `${named} exists and is no copy of a mirror, so it is left as it is; name another file, or move it away`,
    )
  if (!before && fs.lstatSync(named, { throwIfNoEntry: false }))
    throw new UsageError(`${named} is a link that leads nowhere; name another file, or delete it`)
  // SQLite would take it for a part of the new file.
  const beside = ['-journal', '-wal'].map((end) => file + end).find((one) => sizeOf(one) > 0)
  if (beside !== undefined)
    throw new UsageError(
      `a program has written to ${named} and left ${beside}: close it, or delete that file, and copy again`,
    )
  return { file, before }
}

/** Call it while this process has the file not open: closing any handle of it drops SQLite's locks. */
export function isCopyFile(file: string): boolean {
  try {
    const header = inspectHeader(file)
    return header.kind === 'sqlite' && header.applicationId === COPY_ID
  } catch {
    return false
  }
}

function sizeOf(file: string): number {
  return fs.lstatSync(file, { throwIfNoEntry: false })?.size ?? 0
}

/** Free on the disk for other things, whatever is copied. */
const RESERVE_BYTES = 64 * 1024 * 1024

/** How many bytes a copy may have; null if there is not room enough for it. */
export function roomFor(mirror: string, { file, before }: Place): number | null {
  const { bavail, bsize } = fs.statfsSync(path.dirname(file))
  const most = bavail * bsize - RESERVE_BYTES
  // A copy has each item twice, and indexes for everything.
  const expected = before
    ? before.size * 1.1
    : 2 * (sizeOf(fs.realpathSync(mirror)) + sizeOf(`${mirror}-wal`))
  return most > expected ? most : null
}

/** `.mirror.db.12345-9f86d081d6c1.unfinished`: between the dots the name of the lock that its process holds. */
const UNFINISHED = /^\.(.+)\.(\d{1,10}-[0-9a-f]{12})\.unfinished$/

/** Makes an empty file beside another one. */
export function makeUnfinished(file: string, lock: string, mode: number): string {
  const unfinished = path.join(path.dirname(file), `.${path.basename(file)}.${lock}.unfinished`)
  const { O_RDWR, O_CREAT, O_EXCL, O_NOFOLLOW } = fs.constants
  fs.closeSync(fs.openSync(unfinished, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, mode))
  return unfinished
}

/** A process that could hold no lock may still be at work on a younger file. */
const SWEPT_AFTER_MS = 3_600_000

/** Deletes what killed processes of this user left beside a file. `own`: the stat of a file of ours, just made. */
export function sweepUnfinished(mirror: string, { file }: Place, own: fs.Stats): void {
  const [folder, locks] = [path.dirname(file), leasesFolder(mirror)]
  const names = [path.basename(file), `${path.basename(file)}.json`]
  for (const name of fs.readdirSync(folder)) {
    const [, of, lock] = UNFINISHED.exec(name) ?? []
    if (of === undefined || lock === undefined || !names.includes(of)) continue
    const stat = fs.lstatSync(path.join(folder, name), { throwIfNoEntry: false })
    if (!stat?.isFile() || stat.uid !== own.uid || stat.ino === own.ino) continue
    if (isLeft(locks, lock, own.mtimeMs - stat.mtimeMs)) fs.rmSync(path.join(folder, name), { force: true })
  }
}

function isLeft(locks: string, lock: string, age: number): boolean {
  try {
    const state = lockState(locks, lock)
    return state === 'free' || (state === 'none' && age > SWEPT_AFTER_MS)
  } catch {
    return false
  }
}

export interface Finish {
  /** Null: as umask has made it, or as the file that is replaced. */
  mode: number | null
  before: fs.Stats | null
  /** The time of the file: of the moment that it shows. */
  at: Date
}

/** Gives a written file its rights and its time, and waits for the disk. */
export function finishFile(file: string, { mode, before, at }: Finish): void {
  const handle = fs.openSync(file, fs.constants.O_RDWR | fs.constants.O_NOFOLLOW)
  try {
    if (mode !== null) fs.fchmodSync(handle, mode)
    else if (before) makeLike(handle, before)
    fs.futimesSync(handle, at, at)
    fs.fsyncSync(handle)
  } finally {
    fs.closeSync(handle)
  }
}

/** The owner, the group and the rights of the file that is replaced, as far as this user may. */
function makeLike(handle: number, { mode, uid, gid }: fs.Stats): void {
  const own = fs.fstatSync(handle)
  const isGroup = own.gid === gid || succeeds(() => fs.fchownSync(handle, own.uid, gid))
  if (own.uid !== uid) succeeds(() => fs.fchownSync(handle, uid, isGroup ? gid : own.gid))
  // If the group stays ours, it gets no rights.
  fs.fchmodSync(handle, mode & (isGroup ? 0o777 : 0o707))
}

function succeeds(task: () => void): boolean {
  try {
    task()
    return true
  } catch {
    return false
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
