import { printable } from '../../text.ts'
import { holdLock, leasesFolder, lockState, removeLock } from './file/lock-file.ts'
import type { Connection } from './sql.ts'

/**
 * Which process works on which job. Each process holds a lock on a file of its own beside the mirror for its
 * whole life; a job's row names that file. The operating system drops the lock with the process: a killed
 * process loses its jobs, a stopped one (SIGSTOP) keeps them. No heartbeat could tell these two apart.
 */
export interface Leases {
  /**
   * Takes the job and returns null, or returns the name of its owner. Throws MirrorError if this user cannot
   * tell whether that one lives. Call it inside a transaction, so that no two processes take a job. `isVerify`: only to compare it.
   */
  take(organizationId: string, collection: string, isVerify?: boolean): string | null
  release(organizationId: string, collection: string): void
  /** Throws MirrorLostError if our lock file was deleted: other processes then take our jobs. */
  assertAlive(): void
  close(): void
}

export interface LeaseOptions {
  connection: Connection
  /** The mirror's file. */
  file: string
  /** A name that no other process ever has, from `newLockName`. */
  name: string
  now: () => number
}

/** A younger file may belong to a process that has created it and not locked it yet. */
const SWEPT_AFTER_MS = 3_600_000

export function createLeases({ connection, file, name, now }: LeaseOptions): Leases {
  const folder = leasesFolder(file)
  // The lock file tells a daemon that died from one that ended, or ran on the file that this is a copy of.
  const findDaemon = connection.prepare("SELECT 1 FROM sync_settings WHERE name = 'daemon ' || ?").pluck()
  const isDaemon = (owner: string) => findDaemon.get(owner) === 1
  const sweptBefore = now() - SWEPT_AFTER_MS
  // Locked before the name is written anywhere: a name without a lock is a dead process's.
  const lock = holdLock(file, name, (other, madeAt) => madeAt < sweptBefore && !isDaemon(other))

  const ownerOf = connection
    .prepare('SELECT owner FROM sync_jobs WHERE organization_id = ? AND collection = ?')
    .pluck()
  // `forget` may have deleted the row since then; without a row, two processes could take the job.
  const setOwner = connection.prepare(`
    INSERT INTO sync_jobs (organization_id, collection, configured, owner, verifying) VALUES (?, ?, 1, ?, ?)
    ON CONFLICT (organization_id, collection) DO UPDATE
    SET owner = excluded.owner, verifying = excluded.verifying, retry_since = NULL, retry_until = NULL, retry_error = NULL
  `)
  const clearOwner = connection.prepare(
    'UPDATE sync_jobs SET owner = NULL, verifying = 0 WHERE organization_id = ? AND collection = ? AND owner = ?',
  )
  // The jobs of this process: our name in a row may be left from a release that could not be written.
  const working = new Set<string>()

  function isAlive(owner: string): boolean {
    const state = lockState(folder, owner)
    if (state === 'free' && !isDaemon(owner)) removeLock(folder, owner)
    return state === 'locked'
  }

  return {
    take(organizationId, collection, isVerify = false) {
      const owner = ownerOf.get(organizationId, collection) as string | null | undefined
      const job = jobName(organizationId, collection)
      // Never open our own file: closing a second handle of it would drop our lock.
      const isTaken = owner === name ? working.has(job) : owner && isAlive(owner)
      if (owner && isTaken) return owner
      setOwner.run(organizationId, collection, name, isVerify ? 1 : 0)
      working.add(job)
      return null
    },
    release(organizationId, collection) {
      working.delete(jobName(organizationId, collection))
      clearOwner.run(organizationId, collection, name)
    },
    assertAlive: lock.assertInPlace,
    close: lock.release,
  }
}

function jobName(organizationId: string, collection: string): string {
  return `${organizationId} ${collection}`
}

/**
 * Whether the process with this lock file lives; null if this user cannot tell. Changes nothing, neither the
 * job nor the lock file of a dead process. A process must not ask for its own name.
 */
export function isOwnerAlive(mirrorFile: string, owner: string): boolean | null {
  const state = ownerState(mirrorFile, owner)
  return state && state === 'alive'
}

/** The same; `dead` is a process that was killed, and `gone` one that ended, or never ran on this file. */
export function ownerState(mirrorFile: string, owner: string): 'alive' | 'dead' | 'gone' | null {
  try {
    const state = lockState(leasesFolder(mirrorFile), owner)
    return state === 'locked' ? 'alive' : state === 'free' ? 'dead' : 'gone'
  } catch {
    return null
  }
}

/** The setting that names the process at long work on the file. */
const MAINTENANCE = 'maintenance'

export interface MaintenanceNotice {
  /** The name of that process's lock file. */
  owner: string
  what: string
}

/**
 * Notes which process works on the file for long: others wait as long as it lives. Returns false, and changes
 * nothing, if another living process has done so. Call it inside an immediate transaction.
 */
export function announceMaintenance(connection: Connection, notice: MaintenanceNotice): boolean {
  if (maintenanceUnderWay(connection, notice.owner) !== null) return false
  connection
    .prepare('INSERT OR REPLACE INTO sync_settings (name, value) VALUES (?, ?)')
    .run(MAINTENANCE, JSON.stringify(notice))
  return true
}

export function withdrawMaintenance(connection: Connection): void {
  connection.prepare('DELETE FROM sync_settings WHERE name = ?').run(MAINTENANCE)
}

/** The long work of another living process on the file, in words; null if none. `own`: our name. */
export function maintenanceUnderWay(connection: Connection, own?: string): string | null {
  const value = connection.prepare('SELECT value FROM sync_settings WHERE name = ?').pluck().get(MAINTENANCE)
  const notice = typeof value === 'string' ? parseNotice(value) : null
  if (notice === null || notice.owner === own) return null
  const { owner, what } = notice
  return isOwnerAlive(connection.name, owner) === true
    ? `process ${printable(owner, 40)} is at work on it (${printable(what)})`
    : null
}

/** Null for a text that this program did not write: anyone who may write the mirror can change it. */
function parseNotice(text: string): MaintenanceNotice | null {
  try {
    const { owner, what } = JSON.parse(text) as Record<keyof MaintenanceNotice, unknown>
    return typeof owner === 'string' && typeof what === 'string' ? { owner, what } : null
  } catch {
    return null
  }
}
