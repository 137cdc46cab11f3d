import fs from 'node:fs'
import path from 'node:path'
import { grouped } from '../../../text.ts'
import {
  type ListRow,
  type MirrorFacts,
  neverSynced,
  ownedBy,
  type StatusRow,
  statusRows,
  storedStatus,
} from '../../core/status.ts'
import { LATEST_VERSION } from '../../schema.ts'
import { type Connection, runRule, SQLITE } from '../driver.ts'
import { APPLICATION_ID, schemaVersion, translatingErrors } from '../file/open.ts'
import { isOwnerAlive, readDaemons } from '../leases.ts'

/**
 * What `status` and the listener read of a file, on a connection that this process has open, as it must: opening the file once more and closing
 * it would drop SQLite's locks. `own`: the name of this process's lock file. Throws MirrorError.
 */
export function readFileFacts(connection: Connection, file: string, own: string | null = null): MirrorFacts {
  return translatingErrors(file, () =>
    isCurrentMirror(connection)
      ? {
          jobs: readJobs(connection, file, own),
          daemons: readDaemons(connection, file, own),
          ...runRule(connection, storedStatus()),
        }
      : { jobs: readFreshness(connection), daemons: [], gates: [], misfits: [] },
  )
}

/** Not a copy, nor a mirror that no command of this version has written yet. */
function isCurrentMirror(connection: Connection): boolean {
  const id = connection.pragma('application_id', { simple: true })
  return id === APPLICATION_ID && schemaVersion(connection) === LATEST_VERSION
}

/** All lists that `sync_status` shows. `own`: the name of this process's lock file, if it has one; it lives, and must not be opened here. */
export function readJobs(connection: Connection, file: string, own: string | null = null): StatusRow[] {
  const read = () => runRule(connection, statusRows(SQLITE))
  const first = read()
  const states = new Map<string, boolean | null>(own === null ? [] : [[own, true]])
  for (const { owner } of first)
    if (owner !== null && !states.has(owner)) states.set(owner, isOwnerAlive(file, owner))
  // An owner without a lock may have finished after its name was read: read what it left.
  const rows = [...states.values()].includes(false) ? read() : first
  // An owner that took the job after the first reading lives.
  const lives = (owner: string) => (states.has(owner) ? (states.get(owner) ?? null) : true)
  return rows.map((row) => ownedBy(row, row.owner !== null && lives(row.owner)))
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
