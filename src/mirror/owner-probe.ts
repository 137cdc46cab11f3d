import fs from 'node:fs'
import path from 'node:path'
import { isBusy, openLockFile } from './database.ts'
import { ownersFolder } from './owners.ts'

/**
 * Whether the process that has this name among the mirror's owners still lives; null where that cannot be told, since
 * this user may not try its lock. Nothing is taken: neither the job nor the lock file of a dead process. Not to be asked
 * by a process of its own name, which would lose its lock by it.
 */
export function isOwnerAlive(mirrorFile: string, owner: string): boolean | null {
  try {
    const file = path.join(ownersFolder(mirrorFile), owner)
    // A file that may only be read would be opened all the same, and a lock that is never tried always looks free.
    fs.accessSync(file, fs.constants.R_OK | fs.constants.W_OK)
    return isLocked(file)
  } catch (error) {
    const isGone = error instanceof Error && 'code' in error && error.code === 'ENOENT'
    return isGone ? false : null
  }
}

function isLocked(file: string): boolean {
  const connection = openLockFile(file)
  try {
    connection.exec('BEGIN IMMEDIATE')
    return false
  } catch (error) {
    if (isBusy(error)) return true
    throw error
  } finally {
    connection.close()
  }
}
