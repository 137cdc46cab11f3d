import fs from 'node:fs'
import path from 'node:path'
import { MirrorError, MirrorLostError, MirrorUnavailableError, systemCode } from '../../errors.ts'
import { grouped } from '../../text.ts'

// What errors of SQLite and of the file system mean for the mirror, and what its rights and its disk say before there is one.

const NEEDS_RIGHTS = 'this user needs to write to the file and to its folder'

/** Another process holds the lock. */
export function isBusy(error: unknown): boolean {
  return /^SQLITE_(BUSY|LOCKED)/.test(systemCode(error) ?? '')
}

/** Runs `task`; throws errors of SQLite and of the file system as MirrorError. */
export function translatingErrors<T>(file: string, task: () => T): T {
  try {
    return task()
  } catch (error) {
    throw translate(file, error)
  }
}

/** The MirrorError for an error of SQLite or of the file system; any other error itself. */
export function translate(file: string, error: unknown): unknown {
  const code = systemCode(error)
  if (!(error instanceof Error) || code === null) return error
  const { message } = error
  // The -shm beside the mirror cannot grow on a full disk, and SQLite does not say why.
  if (/^(?:ENOSPC|SQLITE_FULL|SQLITE_IOERR_SHMSIZE)/.test(code))
    return new MirrorUnavailableError(
      `the disk with ${file} is full; make room, and the next run continues from here`,
    )
  if (isBusy(error))
    return new MirrorUnavailableError(
      `${file} was locked by another process for too long (${message}); see which program has it open`,
    )
  if (/^SQLITE_(?:CORRUPT|NOTADB)/.test(code)) return damaged(file, message)
  if (/^SQLITE_(?:READONLY|CANTOPEN|PERM)/.test(code)) return unwritable(file, message)
  if (/^SQLITE_(?:IOERR_(?:SHM|LOCK|UNLOCK|RDLOCK|CHECKRESERVEDLOCK)|PROTOCOL)/.test(code))
    return noWal(file, code)
  if (/^SQLITE_IOERR_(?:READ|WRITE|FSYNC|TRUNCATE)/.test(code))
    return new MirrorError(
      `${file} cannot be read or written (${code}); look at the disk, and at limits: on the size of files (ulimit -f), or on this user's share of it`,
    )
  if (code.startsWith('SQLITE_')) return new MirrorError(`${file}: ${message} (${code})`)
  if (!('syscall' in error)) return error
  const isRefused = code === 'EACCES' || code === 'EPERM'
  const advice = isRefused ? NEEDS_RIGHTS : 'look at the disk, and at "database" in the configuration'
  return new MirrorError(`${file} cannot be used: ${advice} (${message})`)
}

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

export function unwritable(file: string, why: string): MirrorError {
  return new MirrorError(
    `${file} cannot be written (${why}); ${NEEDS_RIGHTS}, and to its -wal and -shm if they exist`,
  )
}

export function may(file: string, mode: number): boolean {
  try {
    fs.accessSync(file, mode)
    return true
  } catch {
    return false
  }
}

/** What this user may use on the disk of a file, through links. Null if the system does not say, or there is no such file. */
export function freeBytes(file: string): number | null {
  try {
    const { bavail, bsize } = fs.statfsSync(path.dirname(fs.realpathSync(file)))
    return bavail * bsize
  } catch {
    return null
  }
}

/** Less room than a page with its WAL may take. Bytes. */
const FULL_BELOW = 1_000_000

/** Why nothing can be written to the mirror: its disk is full. Null if it is not. */
export function fullDisk(file: string, free: number | null): string | null {
  if (free === null || free >= FULL_BELOW) return null
  return `the disk of ${file} is full (${grouped(free)} bytes are left, and ${grouped(FULL_BELOW)} are needed), so nothing can be written: make room`
}

/** Why a mirror cannot be written now; null if it can, or there is none yet. Opens nothing. */
export function unwritableNow(file: string): string | null {
  return fullDisk(file, freeBytes(file)) ?? rightsMissing(file)
}

/** The same by its rights and its folder's. */
function rightsMissing(file: string): string | null {
  try {
    const real = fs.realpathSync(file)
    for (const place of [real, path.dirname(real)]) fs.accessSync(place, fs.constants.W_OK)
    return null
  } catch (error) {
    const code = systemCode(error)
    if (code === 'EROFS') return unwritable(file, 'the disk is mounted read-only').message
    // Its writers may be of another user, and have the rights that this one lacks.
    const owner = fs.statSync(file, { throwIfNoEntry: false })?.uid ?? process.geteuid?.()
    if (code === null || code === 'ENOENT' || owner !== process.geteuid?.()) return null
    return unwritable(file, code).message
  }
}
