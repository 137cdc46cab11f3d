import fs from 'node:fs'
import path from 'node:path'
import { systemCode } from '../../../errors.ts'
import { hasMirrorViews, makeMirrorViews } from '../../core/views.ts'
import { assertKnownVersion } from '../../schema.ts'
import { type Connection, runRule } from '../driver.ts'
import { migrate } from '../migrate.ts'
import { ALTERATION } from '../tables/alter.ts'
import { assertMayWrite, damaged } from './errors.ts'
import {
  APPLICATION_ID,
  assertOurs,
  assertOwnWal,
  attempt,
  connect,
  isBusy,
  makeFolder,
  otherOwner,
  schemaVersion,
  share,
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
    const isNew = assertOurs(file) === 'empty'
    // Before anything is written: even `journal_mode = WAL` changes a file.
    if (isNew) makeFile(file)
    else assertUsable(file)
    const connection = connect(file)
    opened = connection
    if (isNew) connection.pragma(`application_id = ${APPLICATION_ID}`)
    connection.pragma('journal_mode = WAL')
    connection.pragma('synchronous = NORMAL')
    // Twice SQLite's default: a first sync of 2,000 pages waits half as long for the disk. The WAL grows
    // while a reader needs it; the second commit after the reader's end cuts it to the limit.
    connection.pragma(`wal_autocheckpoint = ${WAL_PAGES}`)
    connection.pragma(`journal_size_limit = ${WAL_BYTES}`)
    const makeViews = () => runRule(connection, makeMirrorViews(ALTERATION))
    migrate(connection, makeViews)
    if (!runRule(connection, hasMirrorViews(ALTERATION))) connection.transaction(makeViews).immediate()
    return connection
  } catch (error) {
    opened?.close()
    throw isBusy(error) ? error : translate(file, error)
  }
}

/** Readable by its owner only, like the files that SQLite adds; an existing empty file keeps its mode and owner. */
function makeFile(file: string): void {
  const { O_WRONLY, O_CREAT, O_EXCL, O_NONBLOCK } = fs.constants
  const owner = otherOwner(path.dirname(file))
  if (owner && attempt(() => share(file, O_WRONLY | O_CREAT | O_EXCL, owner, 0o600))) return
  fs.closeSync(fs.openSync(file, O_WRONLY | O_CREAT | O_NONBLOCK, 0o600))
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
