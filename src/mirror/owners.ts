import fs from 'node:fs'
import path from 'node:path'
import type { Claim } from '../sync/types.ts'
import { type Connection, isBusy, openLockFile } from './database.ts'

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
  const folder = `${file}-owners`
  const own = path.join(folder, name)
  fs.mkdirSync(folder, { recursive: true })
  sweep(folder, now() - SWEPT_AFTER_MS)
  // Locked before the name stands anywhere: a name without a lock is a dead process's.
  const held = tryLock(own)
  if (!held || !fs.existsSync(own)) throw new Error(`the lock ${own} was taken by somebody else`)

  const ownerOf = connection
    .prepare('SELECT owner FROM sync_jobs WHERE organization_id = ? AND collection = ?')
    .pluck()
  const setOwner = connection.prepare(
    'UPDATE sync_jobs SET owner = ? WHERE organization_id = ? AND collection = ?',
  )

  return {
    take(organizationId, collection) {
      const owner = ownerOf.get(organizationId, collection) as string | null | undefined
      // Never our own file: a second handle of it, once closed, would take our lock with it.
      if (owner && (owner === name || isAlive(path.join(folder, owner)))) return { taken: false, owner }
      setOwner.run(name, organizationId, collection)
      return { taken: true }
    },
    release(organizationId, collection) {
      setOwner.run(null, organizationId, collection)
    },
    close() {
      held.close()
      fs.rmSync(own, { force: true })
    },
  }
}

/** Takes away the files of processes that were killed. */
function sweep(folder: string, madeBefore: number): void {
  for (const name of fs.readdirSync(folder)) {
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
  fs.rmSync(file, { force: true })
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
