import fs from 'node:fs'
import path from 'node:path'
import Database from 'better-sqlite3'
import { MirrorError } from '../../../errors.ts'
import { assertKnownVersion, LATEST_VERSION } from '../../schema.ts'
import type { Connection } from '../driver.ts'
import { assertMayRead, explainFileError, explainSqliteError } from './errors.ts'
import { inspectHeader } from './header.ts'

/** In the file's header, to tell a mirror from other databases: "admr". */
export const APPLICATION_ID = 0x61646d72

/** The same of a published file, which is only read: "admc". */
export const COPY_ID = 0x61646d63

/**
 * How long one statement waits inside SQLite, which blocks this process; longer waits are in transaction.ts.
 */
const LOCK_MS = 100

/** Opens the mirror for reading; null if there is none yet. `isCopy`: the user named this file, which may be of an older version. Throws MirrorError. */
export function openForReading(file: string, isCopy = false): Connection | null {
  return translatingErrors(file, () => {
    assertMayRead(file)
    if (assertOurs(file, [APPLICATION_ID, COPY_ID], isCopy ? NAME : CHOOSE) === 'empty') return null
    const connection = new Database(file, { readonly: true, timeout: 5000 })
    try {
      if (hasTables(connection, file, isCopy)) return connection
    } catch (error) {
      connection.close()
      throw error
    }
    connection.close()
    return null
  })
}

/** False for a file without tables: a process that was killed while it created the mirror leaves one. */
function hasTables(connection: Connection, file: string, mayBeOld: boolean): boolean {
  assertOwnWal(connection, file)
  const version = schemaVersion(connection)
  assertKnownVersion(version, file)
  if (version === 0 || version === LATEST_VERSION || mayBeOld) return version > 0
  throw new MirrorError(
    `${file} was made by an older admin-mirror; run "admin-mirror sync" once to bring it up to date`,
  )
}

/** Opens a file that is ours. */
export function connect(file: string, readonly = false): Connection {
  return new Database(file, { readonly, timeout: LOCK_MS })
}

/** Makes a folder and its missing parents. Node's recursive mkdir never returns where a folder that exists reports that it does not, as in /proc. */
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

/** A database without tables, for as long as it is open. */
export function openInMemory(): Connection {
  return new Database(':memory:')
}

/** Opens a file without changing it or waiting for locks: an empty copy. */
export function openAsItIs(file: string): Connection {
  return new Database(file, { fileMustExist: true, timeout: 0 })
}

export function assertOurs(
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
      `${file} is a published file, made for reading: nothing can be synced into it; it is left as it is. ${CHOOSE}`,
    )
  }
  if (!ids.includes(header.applicationId)) {
    throw new MirrorError(
      `${file} is a database of something else, not a mirror; it is left as it is. ${advice}`,
    )
  }
  assertKnownVersion(header.userVersion, file)
  return 'ours'
}

const NAME = 'Name a mirror, a published file or a copy of one'
const CHOOSE = 'Choose another file for "database" in the configuration'

/** SQLite uses any whole WAL beside the file as the file's own. */
export function assertOwnWal(connection: Connection, file: string): void {
  const id = connection.pragma('application_id', { simple: true })
  if (id === APPLICATION_ID || id === COPY_ID) return
  throw new MirrorError(
    `${file} is a mirror, but the write-ahead log beside it (${file}-wal) is another database's; both are left as they ` +
      'are. Move the log away, with its -shm, and run the command again',
  )
}

export function schemaVersion(connection: Connection): number {
  return connection.pragma('user_version', { simple: true }) as number
}

/** Returns a function that throws MirrorLostError once a newer version has migrated the mirror. */
export function createVersionCheck(connection: Connection, file: string): () => void {
  const version = connection.prepare('PRAGMA user_version').pluck()
  return () => assertKnownVersion(version.get() as number, file)
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
