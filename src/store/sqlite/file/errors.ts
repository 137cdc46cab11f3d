import fs from 'node:fs'
import path from 'node:path'
import { MirrorError, MirrorLostError, MirrorUnavailableError, systemCode } from '../../../errors.ts'

// What errors of SQLite and of the file system mean for the mirror.

const NEEDS_RIGHTS = 'this user needs to write to the file and to its folder'

const ADVICE: Record<string, string> = {
  EACCES: NEEDS_RIGHTS,
  EPERM: NEEDS_RIGHTS,
  EROFS: 'the disk is mounted read-only',
}

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
  if (code.startsWith('SQLITE_')) return explainSqliteError(file, { code, message: error.message })
  if (!('syscall' in error)) return error
  if (code === 'ENOSPC') return fullDisk(file)
  const advice = ADVICE[code] ?? 'look at the disk, and at "database" in the configuration'
  return new MirrorError(`${file} cannot be used: ${advice} (${error.message})`)
}

export function explainSqliteError(
  file: string,
  { code, message }: Record<'code' | 'message', string>,
): MirrorError {
  if (/^SQLITE_(CORRUPT|NOTADB)/.test(code)) return damaged(file, message)
  if (/^SQLITE_(BUSY|LOCKED)/.test(code))
    return new MirrorUnavailableError(
      `${file} was locked by another process for too long (${message}); see which program has it open`,
    )
  // The -shm beside the mirror cannot grow on a full disk, and SQLite does not say why.
  if (code.startsWith('SQLITE_FULL') || (code === 'SQLITE_IOERR_SHMSIZE' && isFull(file)))
    return fullDisk(file)
  if (/^SQLITE_(READONLY|CANTOPEN|PERM)/.test(code)) return unwritable(file, message)
  if (code === 'SQLITE_IOERR_GETTEMPPATH')
    return new MirrorError(
      `${file} cannot be asked this: no folder for SQLite's temporary files can be written; set SQLITE_TMPDIR to one that can`,
    )
  if (/^SQLITE_IOERR_(?:SHM|LOCK|UNLOCK|RDLOCK|CHECKRESERVEDLOCK)|^SQLITE_PROTOCOL/.test(code))
    return noWal(file, code)
  if (code.startsWith('SQLITE_IOERR'))
    return new MirrorError(
      `${file} cannot be read or written (${code}); look at the disk, and at limits: on the size of files (ulimit -f), or on this user's share of it`,
    )
  return new MirrorError(`${file}: ${message} (${code})`)
}

function fullDisk(file: string): MirrorError {
  return new MirrorUnavailableError(
    `the disk with ${file} is full; make room, and the next run continues from here`,
  )
}

/** SQLite makes and enlarges the -shm in such pieces. */
const SHM_BYTES = 32_768

function isFull(file: string): boolean {
  const { bavail, bsize } = fs.statfsSync(path.dirname(file))
  return bavail * bsize < SHM_BYTES
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

function unwritable(file: string, why: string): MirrorError {
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

/** Throws MirrorError if the mirror exists and this user may not write it. */
export function assertMayWrite(file: string): void {
  if (!may(file, fs.constants.W_OK)) throw unwritable(file, 'its owner has not given this user the right')
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
    const code = systemCode(error)
    if (code === null || code === 'ENOENT') return null
    if (code === 'EROFS') return unwritable(file, 'the disk is mounted read-only').message
    return isWriters ? unwritable(file, error instanceof Error ? error.message : code).message : null
  }
}
