import fs from 'node:fs'
import path from 'node:path'
import Database from 'better-sqlite3'
import { MirrorError, MirrorLostError } from '../../../errors.ts'
import { LATEST_VERSION, migrate } from '../migrations/migrate.ts'
import { assertMayRead, assertMayWrite, damaged, explainFileError, explainSqliteError } from './errors.ts'
import { makeFolder } from './folder.ts'
import { inspectHeader } from './header.ts'

export type Connection = Database.Database
export type Statement = Database.Statement

/** Written into the file's header, so that a mirror is told from any other database: "admr". */
const APPLICATION_ID = 0x61646d72

/** How long one statement waits inside SQLite, where nothing else of this process can run; longer waits are ours. */
const LOCK_MS = 100

/** Pages of the WAL from which on a commit moves them into the file, and the size to which the WAL is cut then. */
const WAL_PAGES = 2000
const WAL_BYTES = 16 * 1024 * 1024

/** Up to this size a file is looked through when it is opened for writing; beyond, damage is met where it is. */
const CHECKED_BYTES = 32 * 1024 * 1024

/**
 * Opens the mirror for writing; makes it, and its folder, where there is none. Throws MirrorError, and leaves a file that
 * is not ours untouched. While another process makes or migrates it, SQLite's own error says so (`isBusy`): it is to be
 * tried again.
 */
export function openForWriting(file: string): Connection {
  let connection: Connection | undefined
  try {
    makeFolder(path.dirname(file))
    const isNew = assertOurs(file) === 'empty'
    // Before anything is written: even `journal_mode = WAL` changes a file that is not in it.
    if (isNew) makeFile(file)
    else assertUsable(file)
    connection = new Database(file, { timeout: LOCK_MS })
    if (isNew) connection.pragma(`application_id = ${APPLICATION_ID}`)
    connection.pragma('journal_mode = WAL')
    connection.pragma('synchronous = NORMAL')
    // Twice SQLite's own: a first sync of 2,000 pages waits half as long for the disk. A reader that holds the WAL back lets
    // it grow; the second commit after the reader's end cuts it to the limit.
    connection.pragma(`wal_autocheckpoint = ${WAL_PAGES}`)
    connection.pragma(`journal_size_limit = ${WAL_BYTES}`)
    migrate(connection)
    return connection
  } catch (error) {
    connection?.close()
    throw isBusy(error) ? error : translate(file, error)
  }
}

/** For its owner alone, as SQLite then makes what lies beside it; an empty file that is there keeps its mode. */
function makeFile(file: string): void {
  const { O_WRONLY, O_CREAT, O_NONBLOCK } = fs.constants
  fs.closeSync(fs.openSync(file, O_WRONLY | O_CREAT | O_NONBLOCK, 0o600))
}

/** Opens the mirror for reading; null where there is none yet. Throws MirrorError. */
export function openForReading(file: string): Connection | null {
  return guarded(file, () => {
    assertMayRead(file)
    if (assertOurs(file) === 'empty') return null
    const connection = new Database(file, { readonly: true, timeout: 5000 })
    try {
      if (hasCurrentTables(connection, file)) return connection
    } catch (error) {
      connection.close()
      throw error
    }
    connection.close()
    return null
  })
}

/** False for a file without tables, which a process leaves that was killed while it made it. */
function hasCurrentTables(connection: Connection, file: string): boolean {
  assertOwnLog(connection, file)
  const version = schemaVersion(connection)
  assertKnown(version, file)
  if (version === 0 || version === LATEST_VERSION) return version > 0
  throw new MirrorError(
    `${file} was made by an older admin-mirror; run "admin-mirror sync" once to bring it up to date`,
  )
}

/** A database without tables, gone when it is closed. */
export function openInMemory(): Connection {
  return new Database(':memory:')
}

/** A small database of its own whose lock tells that a process lives; nothing is ever written into it. */
export function openLockFile(file: string): Connection {
  return new Database(file, { fileMustExist: true, timeout: 0 })
}

/**
 * Moves what no reader holds back from the write-ahead log into the file, and makes the log short if that was all. Takes
 * as long as it takes. Others can write meanwhile, but for the moment in which the log is cut. Returns whether it was.
 */
export function emptyLog(file: string): boolean {
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

function assertOurs(file: string): 'empty' | 'ours' {
  const header = inspectHeader(file)
  if (header.kind === 'absent' || header.kind === 'empty') return 'empty'
  if (header.kind === 'other')
    throw new MirrorError(`${file} is no SQLite database; it is left as it is. ${CHOOSE}`)
  if (header.applicationId !== APPLICATION_ID) {
    throw new MirrorError(
      `${file} is a database of something else, not a mirror; it is left as it is. ${CHOOSE}`,
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

const CHOOSE = 'Choose another file for "database" in the configuration'

/**
 * What the header of the file does not tell: the write-ahead log may hold a newer version, or be another database's, and
 * damage may be anywhere. Looked for through a connection that only reads, since closing one that writes would move the
 * log into the file.
 */
function assertUsable(file: string): void {
  assertMayWrite(file)
  const connection = new Database(file, { readonly: true, timeout: LOCK_MS })
  try {
    assertOwnLog(connection, file)
    assertKnown(schemaVersion(connection), file)
    if (fs.statSync(file).size <= CHECKED_BYTES) assertSound(connection, file)
  } catch (error) {
    // A transaction that broke off, in a mirror that is not in WAL mode, has to be undone by whoever writes.
    if (!(error instanceof Database.SqliteError && error.code === 'SQLITE_READONLY_ROLLBACK')) throw error
  } finally {
    connection.close()
  }
}

/** SQLite takes any log that is whole and lies beside the file for the file's own. */
function assertOwnLog(connection: Connection, file: string): void {
  if (connection.pragma('application_id', { simple: true }) === APPLICATION_ID) return
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

/**
 * What changes whenever somebody, here or in another process, changes a table or a view. Prepared once: where it is asked for
 * with each page, to compile the question takes longer than to answer it.
 */
export function createSchemaVersion(connection: Connection): () => number {
  const version = connection.prepare('PRAGMA schema_version').pluck()
  return () => version.get() as number
}

/** A check that throws MirrorLostError once a newer version of this program has migrated the mirror. */
export function createVersionCheck(connection: Connection, file: string): () => void {
  const version = connection.prepare('PRAGMA user_version').pluck()
  return () => assertKnown(version.get() as number, file)
}

/** Runs `task` and turns SQLite's and the file system's errors into MirrorError. */
export function guarded<T>(file: string, task: () => T): T {
  try {
    return task()
  } catch (error) {
    throw translate(file, error)
  }
}

/** Another process holds the lock; worth waiting for. */
export function isBusy(error: unknown): boolean {
  return error instanceof Database.SqliteError && /^SQLITE_(BUSY|LOCKED)/.test(error.code)
}

/** What a failure of SQLite or of the file system means for the mirror; an error of ours, or a mistake in the program, is handed back. */
export function translate(file: string, error: unknown): unknown {
  if (error instanceof Database.SqliteError) return explainSqliteError(file, error)
  const isOfFiles = error instanceof Error && 'syscall' in error && 'code' in error
  return isOfFiles ? explainFileError(file, error) : error
}
