import fs from 'node:fs'
import path from 'node:path'
import { MirrorError } from '../errors.ts'
import type { Claim } from '../sync/mirror.ts'
import { type Connection, isBusy, openLockFile } from './database.ts'
import { makeFolder } from './folder.ts'

/**
 * Who works on which job, over all processes on the mirror. Each process holds a lock on a file of its own beside the
 * mirror for as long as it lives; a job's row names the file of its owner. The operating system drops the lock with the
 * process, however it ends: so a killed owner holds nothing, and one that merely stands still keeps what it has. No
 * heartbeat could tell these two apart.
 */
export interface Owners {
  /** Takes the job, or says who has it. Inside the caller's transaction, so that two never take it at once. */
  take(organizationId: string, collection: string): Claim
  release(organizationId: string, collection: string): void
  /** Throws MirrorError when our lock file was deleted: others take this process for dead then, and its jobs with it. */
  assertAlive(): void
  close(): void
}

export interface OwnersOptions {
  connection: Connection
  /** The mirror's file. */
  file: string
  /** A name that no other process ever has: `12345-9f86d081`, with the process's id in front for people. */
  name: string
  now: () => number
}

/** A younger file may belong to a process that has made it and not locked it yet. */
const SWEPT_AFTER_MS = 3_600_000

export function createOwners({ connection, file, name, now }: OwnersOptions): Owners {
  const folder = ownersFolder(file)
  const own = path.join(folder, name)
  makeFolder(folder)
  sweep(folder, now() - SWEPT_AFTER_MS)
  // Locked before the name stands anywhere: a name without a lock is a dead process's.
  const held = tryLock(own)
  if (!held || !fs.existsSync(own)) throw new Error(`the lock ${own} was taken by somebody else`)

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

  return {
    take(organizationId, collection) {
      const owner = ownerOf.get(organizationId, collection) as string | null | undefined
      const job = jobName(organizationId, collection)
      // Never our own file: a second handle of it, once closed, would take our lock with it.
      const isTaken = owner === name ? working.has(job) : owner && isAlive(path.join(folder, owner))
      if (owner && isTaken) return { taken: false, owner }
      setOwner.run(organizationId, collection, name)
      working.add(job)
      return { taken: true }
    },
    release(organizationId, collection) {
      working.delete(jobName(organizationId, collection))
      clearOwner.run(organizationId, collection, name)
    },
    assertAlive() {
      if (fs.existsSync(own)) return
      throw new MirrorError(
        `${own} was deleted, which told other processes that this one is at work; leave that folder alone while anything ` +
          'runs, and run the command again',
      )
    },
    close() {
      held.close()
      remove(own)
    },
  }
}

function jobName(organizationId: string, collection: string): string {
  return `${organizationId} ${collection}`
}

/** Where the lock files of a mirror lie; the same folder whatever links lead to the mirror. */
export function ownersFolder(file: string): string {
  return `${fs.realpathSync(file)}-owners`
}

/** What SQLite puts beside a file whose lock is held. */
const JOURNAL = '-journal'

function remove(file: string): void {
  for (const one of [file, file + JOURNAL]) fs.rmSync(one, { force: true })
}

/** Takes away the files of processes that were killed. */
function sweep(folder: string, madeBefore: number): void {
  for (const name of fs.readdirSync(folder)) {
    if (name.endsWith(JOURNAL)) continue
    const file = path.join(folder, name)
    const made = fs.statSync(file, { throwIfNoEntry: false })?.mtimeMs
    if (made !== undefined && made < madeBefore) isAlive(file)
  }
}

/** Whether the process that made the file still holds its lock. The file of one that does not is taken away. */
function isAlive(file: string): boolean {
  if (!fs.existsSync(file)) return false
  const probe = tryLock(file)
  if (!probe) return true
  probe.close()
  remove(file)
  return false
}

/** The lock on a file, as a connection in an open transaction; null when another process has it. */
function tryLock(file: string): Connection | null {
  const connection = openLockFile(file)
  try {
    connection.exec('BEGIN IMMEDIATE')
    return connection
  } catch (error) {
    connection.close()
    if (isBusy(error)) return null
    throw error
  }
}
