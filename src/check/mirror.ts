import fs from 'node:fs'
import path from 'node:path'
import { systemCode, UsageError } from '../errors.ts'
import { impossibleCollections } from '../store/core/collections.ts'
import { assertSameApi } from '../store/core/settings.ts'
import type { ConfiguredCollection } from '../store/core/tables.ts'
import { type Connection, runRule, SQLITE } from '../store/sqlite/driver.ts'
import { assertMayWrite } from '../store/sqlite/file/errors.ts'
import { openForReading, translatingErrors } from '../store/sqlite/file/open.ts'
import { type Origin, originIn } from '../store/sqlite/publish/numbers.ts'
import { inBytes } from '../text.ts'
import { type Finding, fail, ok, warn } from './finding.ts'

const NAME = 'mirror'

/** A file of at most this size is read whole, to find damage: a disk may need half a minute for it. */
const READ_BYTES = 4_000_000_000

/** What was found about the mirror, and which mirror it is. */
export interface CheckedMirror {
  findings: Finding[]
  /** Null if there is none, or none that can be read. */
  origin: Origin | null
}

/** Checks the mirror's file, and changes nothing. `baseUrl`: the API whose lists it has to hold; null: not checked. */
export function checkMirrorFile(
  file: string,
  baseUrl: string | null,
  collections: readonly ConfiguredCollection[],
): CheckedMirror {
  let origin: Origin | null = null
  let impossible: string[] = []
  const look = (connection: Connection) => {
    origin = originIn(connection)
    if (baseUrl !== null) runRule(connection, assertSameApi(baseUrl, connection.name))
    impossible = runRule(connection, impossibleCollections(SQLITE, collections))
  }
  try {
    const contents = translatingErrors(file, () => checkContents(file, look))
    return { findings: [contents, ...collectionFindings(impossible), ...checkDisk(file)], origin }
  } catch (error) {
    return { findings: [findingOf(error)], origin }
  }
}

/** Their messages say what to do. */
export function collectionFindings(impossible: readonly string[]): Finding[] {
  return impossible.map((message) => fail('configuration', 2, message, null))
}

function checkContents(file: string, look: (connection: Connection) => void): Finding {
  const stat = fs.statSync(file, { throwIfNoEntry: false })
  if (!stat || stat.size === 0) {
    const folder = checkFolder(NAME, path.dirname(file))
    return folder.state === 'ok'
      ? ok(NAME, `${file} is not there yet, and can be made (${folder.message})`)
      : { ...folder, exit_code: 4 }
  }
  // After an upgrade it is of an older version until the first command that writes.
  const connection = openForReading(file, false, true)
  try {
    assertMayWrite(file)
    fs.accessSync(nearestFolder(path.dirname(file)), fs.constants.W_OK)
    if (!connection) return ok(NAME, `${file} is empty; the first sync fills it`)
    look(connection)
    const what = `${file} can be written`
    if (stat.size > READ_BYTES) {
      const text = `${what}; with ${inBytes(stat.size)} it is too large to be checked here`
      return warn(NAME, text, `check it by hand while nothing runs: sqlite3 FILE "PRAGMA quick_check"`)
    }
    const found = String(connection.pragma('quick_check(1)', { simple: true }))
    if (found === 'ok') return ok(NAME, `${what}; it is not damaged (quick_check)`)
    const cure = 'restore a copy, or move it away: everything can be read again'
    return fail(NAME, 4, `${file} is damaged: ${found}`, cure)
  } finally {
    connection?.close()
  }
}

/** The finding for an error that came when the mirror was opened. */
export function findingOf(error: unknown): Finding {
  if (error instanceof UsageError) return fail(NAME, 2, error.message, null)
  const code = systemCode(error)
  if (code === 'EACCES' || code === 'EPERM' || code === 'EROFS') {
    const text = `its folder cannot be written by this user (${code})`
    return fail(NAME, 4, text, 'let this user write to the folder')
  }
  if (error instanceof Error) return fail(NAME, 4, error.message, null)
  throw error
}

/** Kinds of file systems (statfs) on which the locks or the shared memory of SQLite do not work as on a disk. */
const DOUBTFUL: Readonly<Record<number, string>> = {
  26985: 'NFS',
  20859: 'SMB',
  4283649346: 'CIFS',
  4266872130: 'SMB',
  16914839: '9p, of a virtual machine',
  1702057286: 'FUSE',
  1397113167: 'AFS',
  12805120: 'Ceph',
}

/** With less room on the disk, syncs soon fail. */
const LEAST_FREE = 32 * 1024 * 1024

/** The file system that a file is on, or would be. */
function checkDisk(file: string): Finding[] {
  const folder = nearestFolder(path.dirname(file))
  const { type, bavail, bsize } = fs.statfsSync(folder)
  const size = fileSize(file) + fileSize(`${file}-wal`)
  return [checkFileSystem(type >>> 0), checkFree(bavail * bsize, size)]
}

export function checkFileSystem(type: number): Finding {
  const kind = DOUBTFUL[type]
  if (kind === undefined) return ok(NAME, 'is on a file system of this machine')
  const text = `is on a network file system, or a mount of another kernel (${kind}), where SQLite's locks may fail and damage it`
  return warn(NAME, text, 'put it on a local disk or a named volume')
}

export function checkFree(free: number, size: number): Finding {
  const text = `${inBytes(free)} free on its disk${size > 0 ? `, and it has ${inBytes(size)}` : ''}`
  if (free < LEAST_FREE) return fail(NAME, 4, text, 'make room')
  if (free < size) return warn(NAME, text, 'make room: a change of a column copies its table')
  return ok(NAME, text)
}

/** The folder, or the nearest one above it that exists. */
function nearestFolder(folder: string): string {
  const parent = path.dirname(folder)
  return fs.existsSync(folder) || parent === folder ? folder : nearestFolder(parent)
}

function fileSize(file: string): number {
  return fs.statSync(file, { throwIfNoEntry: false })?.size ?? 0
}

/** Whether files can be made in a folder, or the folder itself. */
export function checkFolder(name: string, folder: string): Finding {
  const nearest = nearestFolder(folder)
  try {
    if (!fs.statSync(nearest).isDirectory())
      return fail(name, 2, `${nearest} is no folder`, 'name a file in a folder')
    fs.accessSync(nearest, fs.constants.W_OK | fs.constants.X_OK)
    return ok(name, nearest === folder ? `${folder} can be written` : `${folder} can be made`)
  } catch (error) {
    const text = `this user may not write to ${nearest} (${systemCode(error) ?? 'unknown'})`
    const cure = 'name a file in a folder that it may write to, or run as the user whose folder this is'
    return fail(name, 2, text, cure)
  }
}
