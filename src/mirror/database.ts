import fs from 'node:fs'
import path from 'node:path'
import Database from 'better-sqlite3'
import { MirrorError } from '../errors.ts'
import { explainFileError, noTemporaryFolder } from './file-error.ts'
import { makeFolder } from './folder.ts'
import { inspectHeader } from './header.ts'
import { LATEST_VERSION, migrate } from './migrate.ts'

export type Connection = Database.Database
export type Statement = Database.Statement

/** Written into the file's header, so that a mirror is told from any other database: "admr". */
const APPLICATION_ID = 0x61646d72

/** How long one statement waits inside SQLite, where nothing else of this process can run; longer waits are ours. */
const LOCK_MS = 100

/** Up to this size a file is looked through when it is opened for writing; beyond, damage is met where it is. */
const CHECKED_BYTES = 64 * 1024 * 1024

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
    connection = new Database(file, { timeout: LOCK_MS })
    if (isNew) connection.pragma(`application_id = ${APPLICATION_ID}`)
    // Before anything is written: even `journal_mode = WAL` changes a file that is not in it.
    else assertUsable(connection, file)
    connection.pragma('journal_mode = WAL')
    connection.pragma('synchronous = NORMAL')
    migrate(connection)
    return connection
  } catch (error) {
    connection?.close()
    throw isBusy(error) ? error : translate(file, error)
  }
}

/** Opens the mirror for reading; null where there is none yet. Throws MirrorError. */
export function openForReading(file: string): Connection | null {
  return guarded(file, () => {
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
  const version = schemaVersion(connection)
  assertKnown(version, file)
  if (version === 0 || version === LATEST_VERSION) return version > 0
  throw new MirrorError(
    `${file} was made by an older admin-mirror; run "admin-mirror sync" once to bring it up to date`,
  )
}

/** A small database of its own whose lock tells that a process lives; nothing is ever written into it. */
export function openLockFile(file: string): Connection {
  return new Database(file, { timeout: 0 })
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
  throw new MirrorError(
    `${file} was made by a newer admin-mirror (schema ${version}, this one knows ${LATEST_VERSION}); ` +
      'it is left as it is. Use the newer version',
  )
}

const CHOOSE = 'Choose another file for "database" in the configuration'

/** What the header of the file does not tell: a newer version may stand in the write-ahead log, and damage anywhere. */
function assertUsable(connection: Connection, file: string): void {
  assertKnown(schemaVersion(connection), file)
  if (fs.statSync(file).size <= CHECKED_BYTES) assertSound(connection, file)
}

function schemaVersion(connection: Connection): number {
  return connection.pragma('user_version', { simple: true }) as number
}

function assertSound(connection: Connection, file: string): void {
  const [first] = connection.pragma('quick_check(1)') as { quick_check: string }[]
  if (first?.quick_check !== 'ok') throw damaged(file, first?.quick_check ?? 'no answer')
}

function damaged(file: string, what: string): MirrorError {
  return new MirrorError(
    `${file} is damaged (${what}); it is left as it is. Restore a copy, or move it away and run "admin-mirror sync" to read everything anew`,
  )
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
  if (error instanceof Database.SqliteError) return explain(file, error)
  const isOfFiles = error instanceof Error && 'syscall' in error && 'code' in error
  return isOfFiles ? explainFileError(file, error) : error
}

function explain(file: string, error: { code: string; message: string }): MirrorError {
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
  if (code.startsWith('SQLITE_IOERR'))
    return new MirrorError(`${file} cannot be read or written (${code}); look at the disk`)
  return new MirrorError(`${file}: ${message} (${code})`)
}
