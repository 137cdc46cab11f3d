import fs from 'node:fs'
import path from 'node:path'
import { MirrorError } from '../errors.ts'

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
  return new MirrorError(`${file} cannot be used: ${advice} (${error.message})`)
}

/** What an error of SQLite means for the mirror. */
export function explainSqliteError(file: string, error: { code: string; message: string }): MirrorError {
  const { code, message } = error
  if (/^SQLITE_(CORRUPT|NOTADB)/.test(code)) return damaged(file, message)
  if (/^SQLITE_(BUSY|LOCKED)/.test(code)) {
    return new MirrorError(
      `${file} is locked by another process for too long (${message}); see who has it open`,
    )
  }
  if (code.startsWith('SQLITE_FULL'))
    return new MirrorError(`the disk with ${file} is full; make room, and the next run goes on from here`)
  if (/^SQLITE_(READONLY|CANTOPEN|PERM)/.test(code)) {
    return new MirrorError(
      `${file} cannot be written (${message}); this user needs to write to the file and to its folder`,
    )
  }
  if (code === 'SQLITE_IOERR_GETTEMPPATH') return noTemporaryFolder(file)
  if (code.startsWith('SQLITE_IOERR')) return unreachable(file, code)
  return new MirrorError(`${file}: ${message} (${code})`)
}

export function damaged(file: string, what: string): MirrorError {
  // SQLite may tell it in several lines, and an error is one.
  return new MirrorError(
    `${file} is damaged (${what.replaceAll(/\s+/g, ' ')}); it is left as it is. Restore a copy, or move it away and run "admin-mirror sync" to read everything anew`,
  )
}

function unreachable(file: string, code: string): MirrorError {
  if (/READ/.test(code)) return new MirrorError(`${file} cannot be read (${code}); look at the disk`)
  return new MirrorError(
    `${file} cannot be written (${code}); look at the disk, and at limits: on the size of files (ulimit -f), or on this ` +
      "user's share of the disk. Then the next run goes on from here",
  )
}

/** Bytes 18 and 19 of a database's header are 2 in WAL mode. */
const WAL_MARK = 18

/**
 * Why a mirror cannot even be read: in WAL mode each reader needs the -shm file, and may have to make it. Null where that
 * is not the reason. Not to be asked while this process has the file open: closing any handle of it drops SQLite's locks.
 */
export function explainUnreadableWal(file: string): MirrorError | null {
  if (!may(file, fs.constants.R_OK)) return null
  const real = fs.realpathSync(file)
  if (may(path.dirname(real), fs.constants.W_OK) || may(`${real}-shm`, fs.constants.R_OK)) return null
  if (!isInWal(real)) return null
  return new MirrorError(
    `${file} cannot be read: a database in WAL mode needs write access to its folder, or a sync that is running. ` +
      `Its owner can make a copy that can be read anywhere: sqlite3 ${file} ".backup copy.db"`,
  )
}

function isInWal(file: string): boolean {
  const header = Buffer.alloc(20)
  const descriptor = fs.openSync(file, 'r')
  try {
    fs.readSync(descriptor, header, 0, header.length, 0)
  } finally {
    fs.closeSync(descriptor)
  }
  return header[WAL_MARK] === 2
}

function may(file: string, mode: number): boolean {
  try {
    fs.accessSync(file, mode)
    return true
  } catch {
    return false
  }
}

/** SQLite sorts what is large in files of its own, and found no folder for them. */
export function noTemporaryFolder(file: string): MirrorError {
  return new MirrorError(
    `${file} cannot be asked this: no folder for SQLite's temporary files can be written; set SQLITE_TMPDIR to one that can`,
  )
}
