import fs from 'node:fs'
import path from 'node:path'
import { MirrorError, systemCode } from '../../../errors.ts'
import { remakeViews } from '../../core/tables.ts'
import { assertKnownVersion, LATEST_VERSION, stepsFrom } from '../../schema.ts'
import { type Connection, runRule, SQLITE } from '../driver.ts'
import { assertMayWrite, damaged, noWal } from './errors.ts'
import {
  APPLICATION_ID,
  assertOurs,
  assertOwnWal,
  connect,
  isBusy,
  makeFolder,
  schemaVersion,
  translate,
} from './open.ts'

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
  let opened: Connection | undefined
  try {
    makeFolder(path.dirname(file))
    assertNotAsRoot(file)
    const isNew = assertOurs(file) === 'empty'
    // Before anything is written: even `journal_mode = WAL` changes a file.
    if (isNew) makeFile(file)
    else assertUsable(file)
    const connection = connect(file)
    opened = connection
    if (isNew) connection.pragma(`application_id = ${APPLICATION_ID}`)
    if (connection.pragma('journal_mode = WAL', { simple: true }) !== 'wal') throw noWal(file, 'no WAL mode')
    connection.pragma('synchronous = NORMAL')
    // Twice SQLite's default: a first sync of 2,000 pages waits half as long for the disk. The WAL grows
    // while a reader needs it; the second commit after the reader's end cuts it to the limit.
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

/** Readable by its owner only, like the files that SQLite adds; an existing empty file keeps its mode. */
function makeFile(file: string): void {
  fs.closeSync(fs.openSync(file, 'a', 0o600))
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
 * Checks what the header does not show: the WAL may hold a newer version or another database, and damage may
 * be anywhere. Only reads, since closing a connection that writes would move the WAL into the file.
 */
function assertUsable(file: string): void {
  assertMayWrite(file)
  const connection = connect(file, true)
  try {
    assertOwnWal(connection, file)
    assertKnownVersion(schemaVersion(connection), file)
    if (fs.statSync(file).size <= CHECKED_BYTES) assertSound(connection, file)
  } catch (error) {
    // In a mirror outside WAL mode, only a writer can roll back an interrupted transaction.
    if (systemCode(error) !== 'SQLITE_READONLY_ROLLBACK') throw error
  } finally {
    connection.close()
  }
}

function assertSound(connection: Connection, file: string): void {
  const [first] = connection.pragma('quick_check(1)') as { quick_check: string }[]
  if (first?.quick_check !== 'ok') throw damaged(file, first?.quick_check ?? 'no answer')
}
