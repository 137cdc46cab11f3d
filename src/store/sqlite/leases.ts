import type { JobNames } from '../core/jobs.ts'
import { announcedDaemons, DAEMON, type DaemonRecord, ownerOf, releaseJob } from '../core/leases.ts'
import { removeSetting, saveSetting, setting } from '../core/settings.ts'
import { type Rule, run } from '../core/sql.ts'
import { type Connection, runRule } from './driver.ts'
import { holdLock, leasesFolder, lockState, removeLock } from './file/lock-file.ts'

export type Leases = ReturnType<typeof createLeases>

/** A younger file may belong to a process that has created it and not locked it yet. */
const SWEPT_AFTER_MS = 3_600_000

/**
 * Which process works on which job. Each process holds a lock on a file of its own beside the mirror for its
 * whole life; a job's row names that file. The operating system drops the lock with the process: a killed
 * process loses its jobs, a stopped one (SIGSTOP) keeps them. No heartbeat could tell these two apart.
 * @param name From `newLockName`: no other process ever has it.
 */
export function createLeases(connection: Connection, name: string, now: () => number) {
  const file = connection.name
  const folder = leasesFolder(file)
  // Stays for `status`: by its lock file a daemon that died is told from one that ended, or that ran on the original of this file.
  const isDaemon = (owner: string) => runRule(connection, setting(DAEMON + owner)) !== null
  const sweptBefore = now() - SWEPT_AFTER_MS
  // Locked before the name is written anywhere: a name without a lock is a dead process's.
  const lock = holdLock(file, name, (other, madeAt) => madeAt < sweptBefore && !isDaemon(other))

  // The jobs of this process. The rows do not show them: a release that could not be written leaves our name in one.
  const working = new Set<string>()

  function isAlive(owner: string): boolean {
    const state = lockState(folder, owner)
    if (state === 'free' && !isDaemon(owner)) removeLock(folder, owner)
    return state === 'locked'
  }

  return {
    /**
     * Takes the job and returns null, or returns the name of its owner. Throws MirrorError if this user cannot
     * tell whether that one lives. Call it inside a transaction, so that no two processes take a job. `isVerify`: only to compare it.
     */
    take(job: JobNames, isVerify = false): string | null {
      const owner = runRule(connection, ownerOf(job))
      // Never open our own file: closing a second handle of it would drop our lock.
      const isTaken = owner === name ? working.has(nameOf(job)) : owner !== null && isAlive(owner)
      if (isTaken) return owner
      runRule(connection, noteOwner(job, name, isVerify))
      working.add(nameOf(job))
      return null
    },
    /** Call it inside a transaction. */
    release(job: JobNames): void {
      working.delete(nameOf(job))
      runRule(connection, releaseJob(job, { owner: name }))
    },
    /** Throws MirrorLostError if our lock file was deleted: other processes then take our jobs. */
    assertAlive: lock.assertInPlace,
    close: lock.release,
  }
}

/** Notes that a process has a job. `forget` may have deleted the row: without one, two processes could take the job. */
function noteOwner(job: JobNames, owner: string, isVerify: boolean): Rule<number> {
  return run(
    `
      INSERT INTO sync_jobs (organization_id, collection, configured, owner, verifying)
      VALUES (:organization, :collection, 1, :owner, :verifying)
      ON CONFLICT (organization_id, collection) DO UPDATE
      SET owner = excluded.owner, verifying = excluded.verifying, retry_since = NULL, retry_until = NULL, retry_error = NULL
    `,
    { ...job, owner, verifying: isVerify ? 1 : 0 },
  )
}

function nameOf({ organization, collection }: JobNames): string {
  return `${organization} ${collection}`
}

/**
 * Whether the process with this lock file lives; null if this user cannot tell. Changes nothing, neither the
 * job nor the lock file of a dead process. A process must not ask for its own name.
 */
export function isOwnerAlive(mirrorFile: string, owner: string): boolean | null {
  const state = ownerState(mirrorFile, owner)
  return state && state === 'alive'
}

/** What became of a process: `dead` was killed, `gone` ended or never ran on this file; null if this user cannot tell. */
function ownerState(mirrorFile: string, owner: string): 'alive' | 'dead' | 'gone' | null {
  try {
    const state = lockState(leasesFolder(mirrorFile), owner)
    return state === 'locked' ? 'alive' : state === 'free' ? 'dead' : 'gone'
  } catch {
    return null
  }
}

// A `start` names itself in `sync_settings`, since its lock file alone looks like that of any command.

/** Notes that this process is a `start` with this configuration. Forgets those that have died. Call it inside a transaction. */
export function announceDaemon(
  connection: Connection,
  owner: string,
  since: string,
  configuration: string,
): void {
  for (const other of daemonsOf(connection))
    if (isOwnerAlive(connection.name, other.owner) === false)
      runRule(connection, removeSetting(DAEMON + other.owner))
  runRule(connection, saveSetting(DAEMON + owner, `${since} ${configuration}`))
}

/** Notes that this process ends as it was told to. Call it inside a transaction. */
export function withdrawDaemon(connection: Connection, owner: string): void {
  runRule(connection, removeSetting(DAEMON + owner))
}

/**
 * Every `start` that runs, or died; the oldest first. One that was stopped left no lock file, and a record only in a copy that was made before.
 * `own`: the name of this process's lock file, which must not be opened here.
 */
export function readDaemons(connection: Connection, file: string, own: string | null = null): DaemonRecord[] {
  return daemonsOf(connection).flatMap(({ owner, value }) => {
    const [since = '', configuration = ''] = value.split(' ')
    const state = owner === own ? 'alive' : ownerState(file, owner)
    const running = state && state === 'alive'
    return state === 'gone' ? [] : [{ pid: Number.parseInt(owner, 10), since, running, configuration }]
  })
}

function daemonsOf(connection: Connection) {
  return runRule(connection, announcedDaemons()).filter(
    ({ owner, value }) => /^\d{1,10}-[0-9a-f]{12}$/.test(owner) && isTime(value.split(' ')[0] ?? ''),
  )
}

function isTime(text: string): boolean {
  return /^\d{4}-\d\d-\d\dT[\d:.]{8,12}Z$/.test(text) && !Number.isNaN(Date.parse(text))
}
