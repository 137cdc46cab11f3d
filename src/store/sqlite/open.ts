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

/** `none`: there is no file, or an empty one, which counts as new. */
type FileKind = 'none' | 'mirror' | 'copy' | 'foreign' | 'other' | 'no file'

/**
 * What a file is by its first 100 bytes (https://sqlite.org/fileformat.html#the_database_header), without SQLite, which could roll back the journal of
 * a database that is not ours.
 */
export function inspectHeader(file: string): { kind: FileKind; isInWal: boolean } {
  const stat = fs.statSync(file, { throwIfNoEntry: false })
  // A folder cannot be read, and a pipe may never end.
  if (stat && !stat.isFile()) return { kind: 'no file', isInWal: false }
  if (!stat?.size) return { kind: 'none', isInWal: false }
  const bytes = Buffer.alloc(100)
  const handle = fs.openSync(file, 'r')
  fs.readSync(handle, bytes, 0, 100, 0)
  fs.closeSync(handle)
  if (bytes.toString('latin1', 0, 16) !== 'SQLite format 3\0') return { kind: 'other', isInWal: false }
  const id = bytes.readUInt32BE(68)
  const kind = id === APPLICATION_ID ? 'mirror' : id === COPY_ID ? 'copy' : 'foreign'
  return { kind, isInWal: bytes[18] === 2 }
}

const STRANGERS: Readonly<Partial<Record<FileKind, string>>> = {
  copy: 'a published file, made for reading: nothing can be synced into it',
  foreign: 'a database of something else, not a mirror',
  other: 'no SQLite database',
  'no file': 'a folder, a pipe or a device, where a file should be',
}

/** Why such a file cannot be the mirror; null: it is one, or can become one. */
export function strangerFault(file: string, kind: FileKind): string | null {
  const what = STRANGERS[kind]
  return what === undefined ? null : `${file} is ${what}; it is left as it is. Choose another file`
}

/** Returns the version of an open file, as the WAL has it. Throws MirrorError if it is another database's, or not known: SQLite takes any whole WAL beside a file as its own. */
function versionOf(connection: Connection, file: string): number {
  const id = connection.pragma('application_id', { simple: true })
  if (id !== APPLICATION_ID && id !== COPY_ID)
    throw new MirrorError(
      `${file}-wal is the log of another database: move it away, with the -shm beside it, and run the command again`,
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
 * Opens the mirror, or a copy of it, for reading; null if there is none yet, or one without tables, as a process leaves it that was killed while
 * it made it. Throws MirrorError.
 */
export function openForReading(file: string): Connection | null {
  return translatingErrors(file, () => {
    if (may(file, fs.constants.F_OK) && !may(file, fs.constants.R_OK))
      throw unreadable(file, 'its owner has not given this user the right')
    const { kind, isInWal } = inspectHeader(file)
    if (kind === 'none') return null
    const fault = kind === 'copy' ? null : strangerFault(file, kind)
    if (fault !== null) throw new MirrorError(fault)
    if (isInWal) assertLeavesNothing(fs.realpathSync(file))
    const connection = new Database(file, { readonly: true, timeout: 5000 })
    let version = 0
    try {
      version = versionOf(connection, file)
    } finally {
      if (version === 0) connection.close()
    }
    return version === 0 ? null : connection
  })
}

/** In WAL mode a reader makes the missing -wal and -shm: if it may not write the mirror, its owner could not write them. */
function assertLeavesNothing(file: string): void {
  if (may(file, fs.constants.W_OK) || ['-wal', '-shm'].every((end) => may(file + end, fs.constants.R_OK)))
    return
  const needs = 'needs write access to the file and to its folder, or a sync that is running'
  throw unreadable(file, `a database in WAL mode ${needs}`)
}

function unreadable(file: string, why: string): MirrorError {
  const advice = 'Its owner can make a copy that can be read anywhere: admin-mirror snapshot copy.db'
  return new MirrorError(`${file} cannot be read: ${why}. ${advice}`)
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
    const { kind } = inspectHeader(file)
    const fault = strangerFault(file, kind)
    if (fault !== null) throw new MirrorError(fault)
    const isNew = kind === 'none'
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
    // What `forget` deletes, and what is removed or pruned, must not stay readable in the file.
    connection.pragma('secure_delete = ON')
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
