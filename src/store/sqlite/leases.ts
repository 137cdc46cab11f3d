import path from 'node:path'
import { MirrorLostError } from '../../errors.ts'
import { holdLock, lockState, ownersFolder, removeLock } from './file/lock-file.ts'
import type { Connection } from './file/open.ts'

/**
 * Who works on which job, over all processes on the mirror. Each process holds a lock on a file of its own beside the
 * mirror for as long as it lives; a job's row names the file of its owner. The operating system drops the lock with the
 * process, however it ends: so a killed owner holds nothing, and one that merely stands still keeps what it has. No
 * heartbeat could tell these two apart.
 */
export interface Leases {
  /**
   * Takes the job and returns null, or returns the name of its owner. Inside the caller's transaction, so that two never take it at once. Throws
   * MirrorError where this user cannot tell whether its owner lives.
   */
  take(organizationId: string, collection: string): string | null
  release(organizationId: string, collection: string): void
  /** Throws MirrorLostError when our lock file was deleted: others take this process for dead then, and its jobs with it. */
  assertAlive(): void
  close(): void
}

export interface LeaseOptions {
  connection: Connection
  /** The mirror's file. */
  file: string
  /** A name that no other process ever has, of `newLockName`. */
  name: string
  now: () => number
}

/** A younger file may belong to a process that has made it and not locked it yet. */
const SWEPT_AFTER_MS = 3_600_000

export function createLeases({ connection, file, name, now }: LeaseOptions): Leases {
  const folder = ownersFolder(file)
  // Locked before the name stands anywhere: a name without a lock is a dead process's.
  const lock = holdLock(file, name, now() - SWEPT_AFTER_MS)

  const ownerOf = connection
    .prepare('SELECT owner FROM sync_jobs WHERE organization_id = ? AND collection = ?')
    .pluck()
  // Its line may have been forgotten since it was registered; without one, two could take the job at once.
  const setOwner = connection.prepare(`
    INSERT INTO sync_jobs (organization_id, collection, configured, owner) VALUES (?, ?, 1, ?)
    ON CONFLICT (organization_id, collection) DO UPDATE SET owner = excluded.owner
  `)
  const clearOwner = connection.prepare(
    'UPDATE sync_jobs SET owner = NULL WHERE organization_id = ? AND collection = ? AND owner = ?',
  )
  // What this process itself is at work on: our name in a row may be left from a release that could not be written.
  const working = new Set<string>()

  function isAlive(owner: string): boolean {
    const state = lockState(folder, owner)
    if (state === 'free') removeLock(folder, owner)
    return state === 'held'
  }

  return {
    take(organizationId, collection) {
      const owner = ownerOf.get(organizationId, collection) as string | null | undefined
      const job = jobName(organizationId, collection)
      // Never our own file: a second handle of it, once closed, would take our lock with it.
      const isTaken = owner === name ? working.has(job) : owner && isAlive(owner)
      if (owner && isTaken) return owner
      setOwner.run(organizationId, collection, name)
      working.add(job)
      return null
    },
    release(organizationId, collection) {
      working.delete(jobName(organizationId, collection))
      clearOwner.run(organizationId, collection, name)
    },
    assertAlive() {
      if (lock.isInPlace()) return
      throw new MirrorLostError(
        `${path.join(folder, name)} was deleted, which told other processes that this one is at work; leave that folder ` +
          'alone while anything runs, and run the command again',
      )
    },
    close: lock.release,
  }
}

function jobName(organizationId: string, collection: string): string {
  return `${organizationId} ${collection}`
}

/**
 * Whether the process that has this name among the mirror's owners still lives; null where this user cannot tell. Changes
 * nothing: neither the job nor the lock file of a dead process. A process must not ask for its own name.
 */
export function isOwnerAlive(mirrorFile: string, owner: string): boolean | null {
  try {
    return lockState(ownersFolder(mirrorFile), owner) === 'held'
  } catch {
    return null
  }
}
