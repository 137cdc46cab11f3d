import fs from 'node:fs'
import path from 'node:path'
import Database from 'better-sqlite3'
import { MirrorError } from '../../errors.ts'
import { remakeViews } from '../core/tables.ts'
import { assertKnownVersion, LATEST_VERSION, stepsFrom } from '../schema.ts'
import { type Connection, runRule, SQLITE } from './driver.ts'
import { damaged, isBusy, may, noWal, translate, translatingErrors, unwritable } from './errors.ts'

// How the mirror's file is opened, and made. Closing any handle of a file drops SQLite's locks, so what looks at a file without SQLite does so before
// this process opens it.

/** In the file's header, to tell a mirror from other databases: "admr". */
const APPLICATION_ID = 0x61646d72

/** The same of a published file, which is only read: "admc". */
export const COPY_ID = 0x61646d63

export type Header =
  | { kind: 'absent' | 'empty' | 'other' }
  | { kind: 'sqlite'; applicationId: number; userVersion: number; isInWal: boolean }

/**
 * What a file is by its first 100 bytes (https://sqlite.org/fileformat.html#the_database_header), without SQLite, which could roll back the journal of
 * a database that is not ours. Throws MirrorError for what is no regular file: a pipe may never end.
 */
export function inspectHeader(file: string): Header {
  const stat = fs.statSync(file, { throwIfNoEntry: false })
  if (!stat) return { kind: 'absent' }
  if (!stat.isFile())
    throw new MirrorError(
      `${file} is ${stat.isDirectory() ? 'a folder' : 'a pipe or a device'}, where a regular file should be; name a file`,
    )
  const bytes = Buffer.alloc(100)
  const handle = fs.openSync(file, 'r')
  const length = fs.readSync(handle, bytes, 0, 100, 0)
  fs.closeSync(handle)
  if (length === 0) return { kind: 'empty' }
  if (length < 100 || bytes.toString('latin1', 0, 16) !== 'SQLite format 3\0') return { kind: 'other' }
  return {
    kind: 'sqlite',
    applicationId: bytes.readUInt32BE(68),
    userVersion: bytes.readUInt32BE(60),
    isInWal: bytes[18] === 2,
  }
}

export const CHOOSE = 'Choose another file for "database" in the configuration'

/** Whether there is a mirror; false for no file, and an empty one. Throws MirrorError for another file. `mayBeCopy`: to be read. */
function isMirror(file: string, mayBeCopy: boolean, advice = CHOOSE): boolean {
  const header = inspectHeader(file)
  if (header.kind === 'absent' || header.kind === 'empty') return false
  const isCopy = header.kind === 'sqlite' && header.applicationId === COPY_ID
  const isOurs = header.kind === 'sqlite' && (isCopy || header.applicationId === APPLICATION_ID)
  const what = isOurs
    ? 'a published file, made for reading: nothing can be synced into it'
    : header.kind === 'sqlite'
      ? 'a database of something else, not a mirror'
      : 'no SQLite database'
  if (!isOurs || (isCopy && !mayBeCopy))
    throw new MirrorError(`${file} is ${what}; it is left as it is. ${advice}`)
  assertKnownVersion(header.userVersion, file)
  return true
}

/** Returns the version of an open file, as the WAL has it. Throws MirrorError if it is another database's, or not known: SQLite takes any whole WAL beside a file as its own. */
function versionOf(connection: Connection, file: string): number {
  const id = connection.pragma('application_id', { simple: true })
  if (id !== APPLICATION_ID && id !== COPY_ID)
    throw new MirrorError(
      `${file} is a mirror, but the write-ahead log beside it (${file}-wal) is another database's; both are left as they ` +
        'are. Move the log away, with its -shm, and run the command again',
    )
  const version = schemaVersion(connection)
  assertKnownVersion(version, file)
  return version
}

function schemaVersion(connection: Connection): number {
  return connection.pragma('user_version', { simple: true }) as number
}

/** Not a copy, nor a mirror that no command of this version has written yet. */
export function isCurrentMirror(connection: Connection): boolean {
  const id = connection.pragma('application_id', { simple: true })
  return id === APPLICATION_ID && schemaVersion(connection) === LATEST_VERSION
}

/** How long one statement waits inside SQLite, which blocks this process; longer waits are in runner.ts. */
const LOCK_MS = 100

/** Opens a file that is ours. */
export function connect(file: string, readonly = false): Connection {
  return new Database(file, { readonly, fileMustExist: true, timeout: LOCK_MS })
}

/**
 * Opens the mirror for reading; null if there is none yet, or one without tables, as a process leaves it that was killed while it made it.
 * `isCopy`: the user named this file, which may be of an older version. Throws MirrorError.
 */
export function openForReading(file: string, isCopy = false): Connection | null {
  return translatingErrors(file, () => {
    assertMayRead(file)
    const advice = isCopy ? 'Name a mirror, a published file or a copy of one' : CHOOSE
    if (!isMirror(file, true, advice)) return null
    const connection = new Database(file, { readonly: true, timeout: 5000 })
    try {
      const version = versionOf(connection, file)
      if (version === LATEST_VERSION || (version > 0 && isCopy)) return connection
      if (version > 0)
        throw new MirrorError(
          `${file} was made by an older admin-mirror; run "admin-mirror sync" once to bring it up to date`,
        )
    } catch (error) {
      connection.close()
      throw error
    }
    connection.close()
    return null
  })
}

/**
 * Throws MirrorError if the mirror exists and this user may not read it. In WAL mode a reader creates the missing -wal and -shm, which the owner
 * could not write afterwards.
 */
function assertMayRead(file: string): void {
  if (!may(file, fs.constants.F_OK)) return
  const advice = 'Its owner can make a copy that can be read anywhere: admin-mirror snapshot copy.db'
  if (!may(file, fs.constants.R_OK))
    throw new MirrorError(`${file} cannot be read: its owner has not given this user the right. ${advice}`)
  const real = fs.realpathSync(file)
  const isRunning = ['-wal', '-shm'].every((end) => may(real + end, fs.constants.R_OK))
  if (isRunning || [real, path.dirname(real)].every((place) => may(place, fs.constants.W_OK))) return
  const header = inspectHeader(real)
  if (header.kind === 'sqlite' && header.isInWal)
    throw new MirrorError(
      `${file} cannot be read: a database in WAL mode needs write access to the file and to its folder, or a sync that is running. ${advice}`,
    )
}

/** Database pages in the WAL at which a commit moves them into the file; then the WAL is cut to this size. */
const WAL_PAGES = 2000
const WAL_BYTES = 16 * 1024 * 1024

/** Up to this size, opening for writing checks the whole file. */
const CHECKED_BYTES = 32 * 1024 * 1024

/**
 * Opens the mirror for writing; creates it, and its folder, if there is none. Throws MirrorError, and leaves a file that is not ours untouched. While
 * another process creates or migrates it, throws SQLite's `isBusy`.
 */
export function openForWriting(file: string): Connection {
  let opened: Connection | undefined
  try {
    fs.mkdirSync(path.dirname(file), { recursive: true })
    assertNotAsRoot(file)
    const isNew = !isMirror(file, false)
    // Readable by its owner only, like the files that SQLite adds; an existing empty file keeps its mode.
    if (isNew) fs.closeSync(fs.openSync(file, 'a', 0o600))
    // Before anything is written: even `journal_mode = WAL` changes a file.
    else assertUsable(file)
    const connection = connect(file)
    opened = connection
    if (isNew) connection.pragma(`application_id = ${APPLICATION_ID}`)
    if (connection.pragma('journal_mode = WAL', { simple: true }) !== 'wal') throw noWal(file, 'no WAL mode')
    connection.pragma('synchronous = NORMAL')
    // Twice SQLite's default: a first sync of 2,000 pages waits half as long for the disk. The WAL grows while a reader needs it; the second commit
    // after the reader's end cuts it to the limit.
    connection.pragma(`wal_autocheckpoint = ${WAL_PAGES}`)
    connection.pragma(`journal_size_limit = ${WAL_BYTES}`)
    // See `rebuildTable` of the driver.
    connection.pragma('foreign_keys = OFF')
    connection.pragma('legacy_alter_table = ON')
    if (schemaVersion(connection) !== LATEST_VERSION) connection.transaction(migrate).immediate(connection)
    return connection
  } catch (error) {
    opened?.close()
    throw isBusy(error) ? error : translate(file, error)
  }
}

/** Brings our own tables and views up to date, in a transaction: a kill leaves the old schema or the new one. */
function migrate(connection: Connection): void {
  // Read under the lock: another process may have been faster.
  const version = schemaVersion(connection)
  if (version === LATEST_VERSION) return
  for (const step of stepsFrom(version, 'file')) connection.exec(step)
  runRule(connection, remakeViews(SQLITE))
  connection.pragma(`user_version = ${LATEST_VERSION}`)
}

/** What root makes beside the mirror of another user, that user cannot write. */
function assertNotAsRoot(file: string): void {
  const uid = fs.statSync(file, { throwIfNoEntry: false })?.uid ?? 0
  if (process.geteuid?.() !== 0 || uid === 0) return
  throw new MirrorError(
    `${file} belongs to the user ${uid}, and root would make files beside it that this user cannot write: run the command as that user, with runuser -u "$(id -nu ${uid})" -- in front of it`,
  )
}

/**
 * Checks what the header does not show: the WAL may hold a newer version or another database, and damage may be anywhere. Only reads, since closing
 * a connection that writes would move the WAL into the file.
 */
function assertUsable(file: string): void {
  if (!may(file, fs.constants.W_OK)) throw unwritable(file, 'its owner has not given this user the right')
  const connection = connect(file, true)
  try {
    versionOf(connection, file)
    if (fs.statSync(file).size > CHECKED_BYTES) return
    const found = connection.pragma('quick_check(1)', { simple: true })
    if (found !== 'ok') throw damaged(file, String(found))
  } finally {
    connection.close()
  }
}
