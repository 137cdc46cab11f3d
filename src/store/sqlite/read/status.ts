import fs from 'node:fs'
import path from 'node:path'
import { grouped } from '../../../text.ts'
import type { IsAlive } from '../../core/leases.ts'
import {
  type ListRow,
  type MirrorFacts,
  neverSynced,
  type StatusRow,
  storedFacts,
} from '../../core/status.ts'
import { LATEST_VERSION } from '../../schema.ts'
import { type Connection, runRule } from '../driver.ts'
import { translatingErrors } from '../file/errors.ts'
import { APPLICATION_ID, schemaVersion } from '../file/open.ts'

/**
 * What `status` and the listener read of a file, on a connection that this process has open, as it must: opening the file once more and closing
 * it would drop SQLite's locks. Throws MirrorError.
 */
export function readFileFacts(connection: Connection, isAlive: IsAlive, now: number): MirrorFacts {
  const read = connection.transaction(() =>
    isCurrentMirror(connection)
      ? runRule(connection, storedFacts(isAlive, now))
      : { jobs: readFreshness(connection), daemons: [], gates: [], misfits: [], unpublished: null },
  )
  return translatingErrors(connection.name, read)
}

/** Not a copy, nor a mirror that no command of this version has written yet. */
function isCurrentMirror(connection: Connection): boolean {
  const id = connection.pragma('application_id', { simple: true })
  return id === APPLICATION_ID && schemaVersion(connection) === LATEST_VERSION
}

/** All that a published file says of its lists. Which process works on them, what it waits for and what comes next is known to the mirror alone. */
function readFreshness(connection: Connection): StatusRow[] {
  const rows = connection
    .prepare('SELECT * FROM sync_status ORDER BY organization, collection')
    .all() as ListRow[]
  return rows.map((row) => ({
    ...neverSynced({ id: row.organization_id, name: row.organization }, row.collection),
    ...row,
    running: null,
    failing_code: row.failing_since === null ? null : row.error_code,
  }))
}

/** What this user may use on the disk of a file, through links. Null if the system does not say, or there is no such file. */
export function freeBytes(file: string): number | null {
  try {
    const folder = path.dirname(fs.realpathSync(file))
    const { bavail, bsize } = fs.statfsSync(folder)
    return bavail * bsize
  } catch {
    return null
  }
}

/** Less room than a page with its WAL may take. Bytes. */
const FULL_BELOW = 1_000_000

/** Why nothing can be written to the mirror: its disk is full. Null if it is not. */
export function fullDisk(file: string, free: number | null): string | null {
  if (free === null || free >= FULL_BELOW) return null
  return `the disk of ${file} is full (${grouped(free)} bytes are left, and ${grouped(FULL_BELOW)} are needed), so nothing can be written: make room`
}
