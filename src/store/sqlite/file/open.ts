import fs from 'node:fs'
import path from 'node:path'
import Database from 'better-sqlite3'
import { MirrorError, MirrorLostError } from '../../../errors.ts'
import { LATEST_VERSION, migrate } from '../migrations/migrate.ts'
import type { Connection } from '../sql.ts'
import { assertMayRead, assertMayWrite, damaged, explainFileError, explainSqliteError } from './errors.ts'
import { inspectHeader } from './header.ts'

/** In the file's header, to tell a mirror from other databases: "admr". */
const APPLICATION_ID = 0x61646d72

/** The same of a copy that `publish` or `snapshot` made, which is only read: "admc". */
export const COPY_ID = 0x61646d63

/**
 * How long one statement waits inside SQLite, which blocks this process; longer waits are in transaction.ts.
 */
const LOCK_MS = 100

/** Database pages in the WAL at which a commit moves them into the file; then the WAL is cut to this size. */
const WAL_PAGES = 2000
const WAL_BYTES = 16 * 1024 * 1024

/** Up to this size, opening for writing checks the whole file. */
const CHECKED_BYTES = 32 * 1024 * 1024

/**
 * Opens the mirror for writing; creates it, and its folder, if there is none. Throws MirrorError, and leaves
 * a file that is not ours untouched. While another process creates or migrates it, throws SQLite's `isBusy`.
 */
export function openForWriting(file: string): Connection {
  let connection: Connection | undefined
  try {
    makeFolder(path.dirname(file))
    const isNew = assertOurs(file) === 'empty'
    // Before anything is written: even `journal_mode = WAL` changes a file.
    if (isNew) makeFile(file)
    else assertUsable(file)
    connection = new Database(file, { timeout: LOCK_MS })
    if (isNew) connection.pragma(`application_id = ${APPLICATION_ID}`)
    connection.pragma('journal_mode = WAL')
    connection.pragma('synchronous = NORMAL')
    // Twice SQLite's default: a first sync of 2,000 pages waits half as long for the disk. The WAL grows
    // while a reader needs it; the second commit after the reader's end cuts it to the limit.
    connection.pragma(`wal_autocheckpoint = ${WAL_PAGES}`)
    connection.pragma(`journal_size_limit = ${WAL_BYTES}`)
    migrate(connection)
    return connection
  } catch (error) {
    connection?.close()
    throw isBusy(error) ? error : translate(file, error)
  }
}

/**
 * Makes a folder and its missing parents. Node's recursive mkdir never returns where a folder that exists
 * reports that it does not, as in /proc.
 */
export function makeFolder(folder: string): void {
  if (fs.existsSync(folder)) return
  makeFolder(path.dirname(folder))
  try {
    fs.mkdirSync(folder)
  } catch (error) {
    // Another process may have been faster.
    if (!fs.existsSync(folder)) throw error
  }
}

/** Readable by its owner only, like the files that SQLite adds; an existing empty file keeps its mode. */
function makeFile(file: string): void {
  const { O_WRONLY, O_CREAT, O_NONBLOCK } = fs.constants
  fs.closeSync(fs.openSync(file, O_WRONLY | O_CREAT | O_NONBLOCK, 0o600))
}

/**
 * Opens the mirror for reading; null if there is none yet. `isCopy`: the user named this file. `mayBeOld`: it
 * may be of an older version. Throws MirrorError.
 */
export function openForReading(file: string, isCopy = false, mayBeOld = isCopy): Connection | null {
  return translatingErrors(file, () => {
    assertMayRead(file)
    if (assertOurs(file, [APPLICATION_ID, COPY_ID], isCopy ? NAME : CHOOSE) === 'empty') return null
    const connection = new Database(file, { readonly: true, timeout: 5000 })
    try {
      if (hasTables(connection, file, mayBeOld)) return connection
    } catch (error) {
      connection.close()
      throw error
    }
    connection.close()
    return null
  })
}

/** False for a file without tables, as a process leaves it that was killed while it created the mirror. */
function hasTables(connection: Connection, file: string, mayBeOld: boolean): boolean {
  assertOwnWal(connection, file)
  const version = schemaVersion(connection)
  assertKnown(version, file)
  if (version === 0 || version === LATEST_VERSION || mayBeOld) return version > 0
  throw new MirrorError(
    `${file} was made by an older admin-mirror; run "admin-mirror sync" once to bring it up to date`,
  )
}

/** A database without tables, for as long as it is open. */
export function openInMemory(): Connection {
  return new Database(':memory:')
}

/** Opens a file as it is, without a wait for locks: a lock file, into which nothing is ever written, or an empty copy. */
export function openAsItIs(file: string): Connection {
  return new Database(file, { fileMustExist: true, timeout: 0 })
}

/**
 * Moves the WAL into the file, and cuts it if no reader needs it. Returns whether it was cut. Has no time
 * limit; other processes can write meanwhile, except in the moment of the cut.
 */
export function emptyWal(file: string): boolean {
  const connection = new Database(file, { fileMustExist: true, timeout: LOCK_MS })
  try {
    const [moved] = connection.pragma('wal_checkpoint(PASSIVE)') as { log: number; checkpointed: number }[]
    if (moved?.log !== moved?.checkpointed) return false
    const [cut] = connection.pragma('wal_checkpoint(TRUNCATE)') as { busy: number }[]
    return cut?.busy === 0
  } finally {
    connection.close()
  }
}

function assertOurs(
  file: string,
  ids: readonly number[] = [APPLICATION_ID],
  advice = CHOOSE,
): 'empty' | 'ours' {
  const header = inspectHeader(file)
  if (header.kind === 'absent' || header.kind === 'empty') return 'empty'
  if (header.kind === 'other')
    throw new MirrorError(`${file} is no SQLite database; it is left as it is. ${advice}`)
  if (header.applicationId === COPY_ID && !ids.includes(COPY_ID)) {
    throw new MirrorError(
      `${file} is a copy of a mirror, made for reading: nothing can be synced into it; it is left as it is. ${CHOOSE}`,
    )
  }
  if (!ids.includes(header.applicationId)) {
    throw new MirrorError(
      `${file} is a database of something else, not a mirror; it is left as it is. ${advice}`,
    )
  }
  assertKnown(header.userVersion, file)
  return 'ours'
}

function assertKnown(version: number, file: string): void {
  if (version <= LATEST_VERSION) return
  throw new MirrorLostError(
    `${file} was made by a newer admin-mirror (schema ${version}, this one knows ${LATEST_VERSION}); ` +
      'it is left as it is. Use the newer version',
  )
}

const NAME = 'Name a mirror, a published file or a copy of one'
const CHOOSE = 'Choose another file for "database" in the configuration'

/**
 * Checks what the header does not show: the WAL may hold a newer version or another database, and damage may
 * be anywhere. Only reads, since closing a connection that writes would move the WAL into the file.
 */
function assertUsable(file: string): void {
  assertMayWrite(file)
  const connection = new Database(file, { readonly: true, timeout: LOCK_MS })
  try {
    assertOwnWal(connection, file)
    assertKnown(schemaVersion(connection), file)
    if (fs.statSync(file).size <= CHECKED_BYTES) assertSound(connection, file)
  } catch (error) {
    // In a mirror outside WAL mode, only a writer can roll back an interrupted transaction.
    if (!(error instanceof Database.SqliteError && error.code === 'SQLITE_READONLY_ROLLBACK')) throw error
  } finally {
    connection.close()
  }
}

/** SQLite uses any whole WAL beside the file as the file's own. */
function assertOwnWal(connection: Connection, file: string): void {
  const id = connection.pragma('application_id', { simple: true })
  if (id === APPLICATION_ID || id === COPY_ID) return
  throw new MirrorError(
    `${file} is a mirror, but the write-ahead log beside it (${file}-wal) is another database's; both are left as they ` +
      'are. Move the log away, with its -shm, and run the command again',
  )
}

function schemaVersion(connection: Connection): number {
  return connection.pragma('user_version', { simple: true }) as number
}

function assertSound(connection: Connection, file: string): void {
  const [first] = connection.pragma('quick_check(1)') as { quick_check: string }[]
  if (first?.quick_check !== 'ok') throw damaged(file, first?.quick_check ?? 'no answer')
}

/** Returns a function that throws MirrorLostError once a newer version has migrated the mirror. */
export function createVersionCheck(connection: Connection, file: string): () => void {
  const version = connection.prepare('PRAGMA user_version').pluck()
  return () => assertKnown(version.get() as number, file)
}

/** Runs `task`; throws errors of SQLite and of the file system as MirrorError. */
export function translatingErrors<T>(file: string, task: () => T): T {
  try {
    return task()
  } catch (error) {
    throw translate(file, error)
  }
}

/** Another process holds the lock. */
export function isBusy(error: unknown): boolean {
  return error instanceof Database.SqliteError && /^SQLITE_(BUSY|LOCKED)/.test(error.code)
}

/** The MirrorError for an error of SQLite or of the file system; any other error itself. */
export function translate(file: string, error: unknown): unknown {
  if (error instanceof Database.SqliteError) return explainSqliteError(file, error)
  const isOfFiles = error instanceof Error && 'syscall' in error && 'code' in error
  return isOfFiles ? explainFileError(file, error) : error
}
