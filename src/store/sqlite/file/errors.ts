import fs from 'node:fs'
import path from 'node:path'
import { MirrorError, MirrorLostError, MirrorUnavailableError, systemCode } from '../../../errors.ts'
import { inspectHeader } from './header.ts'

const NEEDS_RIGHTS = 'this user needs to write to the file and to its folder'

const ADVICE: Record<string, string> = {
  EACCES: NEEDS_RIGHTS,
  EPERM: NEEDS_RIGHTS,
  EROFS: 'the disk is mounted read-only',
  EISDIR: 'it is a folder; name a file as "database" in the configuration',
  ENOTDIR: 'what should be its folder is a file; look at "database" in the configuration',
  EEXIST: 'what should be its folder is a file; look at "database" in the configuration',
  ENOSPC: 'the disk is full; make room',
}

/** What a failure of the file system means for the mirror. */
export function explainFileError(file: string, error: Error & { code: unknown }): MirrorError {
  const advice = ADVICE[String(error.code)] ?? 'look at the disk, and at "database" in the configuration'
  const Kind = error.code === 'ENOSPC' ? MirrorUnavailableError : MirrorError
  return new Kind(`${file} cannot be used: ${advice} (${error.message})`)
}

/** Whether an error of SQLite says that a file is damaged. */
function isDamage(error: unknown): boolean {
  return /^SQLITE_(CORRUPT|NOTADB)/.test(systemCode(error) ?? '')
}

/** What an error of SQLite means for the mirror. */
export function explainSqliteError(file: string, error: Error & { code: string }): MirrorError {
  const { code, message } = error
  if (isDamage(error)) return damaged(file, message)
  if (/^SQLITE_(BUSY|LOCKED)/.test(code)) {
    return new MirrorUnavailableError(
      `${file} was locked by another process for too long (${message}); see which program has it open`,
    )
  }
  // The -shm beside the mirror cannot grow on a full disk, and SQLite does not say why.
  if (code.startsWith('SQLITE_FULL') || (code === 'SQLITE_IOERR_SHMSIZE' && isFull(file)))
    return new MirrorUnavailableError(
      `the disk with ${file} is full; make room, and the next run continues from here`,
    )
  if (/^SQLITE_(READONLY|CANTOPEN|PERM)/.test(code)) return unwritable(file, message)
  if (code === 'SQLITE_IOERR_GETTEMPPATH') return noTemporaryFolder(file)
  if (/^SQLITE_IOERR_(?:SHM|LOCK|UNLOCK|RDLOCK|CHECKRESERVEDLOCK)|^SQLITE_PROTOCOL/.test(code))
    return noWal(file, code)
  if (code.startsWith('SQLITE_IOERR')) return unreachable(file, code)
  return new MirrorError(`${file}: ${message} (${code})`)
}

/** Whether its disk has no room for the least that SQLite writes. */
function isFull(file: string): boolean {
  const { bavail, bsize } = fs.statfsSync(path.dirname(file))
  return bavail * bsize < SHM_BYTES
}

/** SQLite makes and enlarges the -shm in such pieces. */
const SHM_BYTES = 32_768

export function damaged(file: string, what: string): MirrorLostError {
  const hasLog = (fs.statSync(`${file}-wal`, { throwIfNoEntry: false })?.size ?? 0) > 0
  const cause = hasLog
    ? ` If it was put there from a copy, the ${file}-wal beside it may be of the old file: move it and the -shm away, and put the copy there again.`
    : ''
  // SQLite's report may have several lines, and an error has one.
  return new MirrorLostError(
    `${file} is damaged (${what.replaceAll(/\s+/g, ' ')}); it is left as it is.${cause} Restore a copy, or move it away and run "admin-mirror sync" to read everything again`,
  )
}

/** The file system lacks what WAL mode needs. */
export function noWal(file: string, why: string): MirrorError {
  return new MirrorError(
    `${file} cannot be used: its file system has no locks, or no memory that processes share, as SQLite needs them (${why}). Put the mirror on a ` +
      'local disk or a named volume, not on a share or a folder of another system',
  )
}

function unwritable(file: string, why: string): MirrorError {
  return new MirrorError(
    `${file} cannot be written (${why}); ${NEEDS_RIGHTS}, and to its -wal and -shm if they exist`,
  )
}

function unreachable(file: string, code: string): MirrorError {
  if (/READ/.test(code)) return new MirrorError(`${file} cannot be read (${code}); look at the disk`)
  return new MirrorError(
    `${file} cannot be written (${code}); look at the disk, and at limits: on the size of files (ulimit -f), or on this ` +
      "user's share of the disk. Then the next run continues from here",
  )
}

/**
 * Throws MirrorError if the mirror exists and this user may not read it. In WAL mode a reader creates the
 * missing -wal and -shm, which the owner could not write afterwards. Never call it while this process has the
 * file open: closing any handle of it drops SQLite's locks.
 */
export function assertMayRead(file: string): void {
  if (!may(file, fs.constants.F_OK)) {
    assertMayLook(file)
    return
  }
  const advice = 'Its owner can make a copy that can be read anywhere: admin-mirror snapshot copy.db'
  if (!may(file, fs.constants.R_OK))
    throw new MirrorError(`${file} cannot be read: its owner has not given this user the right. ${advice}`)
  const real = fs.realpathSync(file)
  const isRunning = may(`${real}-wal`, fs.constants.R_OK) && may(`${real}-shm`, fs.constants.R_OK)
  if (isRunning || (mayWrite(real) && mayWrite(path.dirname(real)))) return
  const header = inspectHeader(real)
  if (header.kind !== 'sqlite' || !header.isInWal) return
  throw new MirrorError(
    `${file} cannot be read: a database in WAL mode needs write access to the file and to its folder, or a sync that is ` +
      `running. ${advice}`,
  )
}

/** Throws MirrorError if this user cannot see whether the file exists. */
function assertMayLook(file: string): void {
  try {
    fs.statSync(file, { throwIfNoEntry: false })
  } catch (error) {
    if (systemCode(error) === 'EACCES')
      throw new MirrorError(
        `${file} cannot be read: a folder above it does not let this user through (it needs the right x for all of them)`,
      )
  }
}

/** Throws MirrorError if the mirror exists and this user may not write it. */
export function assertMayWrite(file: string): void {
  if (!mayWrite(file)) throw unwritable(file, 'its owner has not given this user the right')
}

/**
 * Why processes of this user cannot write a mirror, by its rights and its folder's; null if they can, or there is no mirror. Opens nothing.
 * `isWriters`: whether the mirror's writers run as this user. Those of another user may have the rights that this one lacks.
 */
export function rightsMissing(file: string, isWriters: boolean): string | null {
  try {
    const real = fs.realpathSync(file)
    for (const place of [real, path.dirname(real)]) fs.accessSync(place, fs.constants.W_OK)
    return null
  } catch (error) {
    if (!(error instanceof Error && 'code' in error) || error.code === 'ENOENT') return null
    if (error.code === 'EROFS') return unwritable(file, 'the disk is mounted read-only').message
    return isWriters ? unwritable(file, error.message).message : null
  }
}

function mayWrite(file: string): boolean {
  return may(file, fs.constants.W_OK)
}

function may(file: string, mode: number): boolean {
  try {
    fs.accessSync(file, mode)
    return true
  } catch {
    return false
  }
}

/** SQLite sorts large results in temporary files, and found no folder for them. */
export function noTemporaryFolder(file: string): MirrorError {
  return new MirrorError(
    `${file} cannot be asked this: no folder for SQLite's temporary files can be written; set SQLITE_TMPDIR to one that can`,
  )
}
