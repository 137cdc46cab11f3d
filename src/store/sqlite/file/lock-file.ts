import fs from 'node:fs'
import path from 'node:path'
import { MirrorError, MirrorLostError, systemCode } from '../../../errors.ts'
import type { Connection } from '../driver.ts'
import { attempt, isBusy, openAsItIs, translate } from './open.ts'

/** `12345-9f86d081d6c1`: the process id, for people, then random digits. Names come from the mirror's tables, which may hold anything. */
const NAME = /^\d{1,10}-[0-9a-f]{12}$/

/** A name for the lock file of this process. `randomHex` returns 12 hexadecimal digits or more. */
export function newLockName(pid: number, randomHex: () => string): string {
  return `${pid}-${randomHex().slice(0, 12)}`
}

/** The folder of a mirror's lock files; the same whatever links lead to the mirror. */
export function leasesFolder(mirrorFile: string): string {
  return `${fs.realpathSync(mirrorFile)}-owners`
}

/**
 * Creates a lock file and locks it until `release` or the end of this process. Who may write the mirror can try the lock. `isSwept`: whether
 * the lock file of a dead process is deleted, by its name and the time when it was made (epoch milliseconds).
 */
export function holdLock(
  mirrorFile: string,
  name: string,
  isSwept: (name: string, madeAt: number) => boolean = () => false,
) {
  const folder = leasesFolder(mirrorFile)
  const file = path.join(folder, name)
  try {
    const { mode } = fs.statSync(mirrorFile)
    // Listing a folder needs the right to execute it.
    makeAs(folder, 0o700 | (mode & 0o066) | ((mode & 0o044) >> 2), (bits) => fs.mkdirSync(folder, bits))
    // Before ours exists: a process must not try its own lock.
    sweep(folder, isSwept)
    makeAs(file, mode & 0o666, (bits) => fs.closeSync(fs.openSync(file, 'wx', bits)))
    const { ino } = fs.statSync(file)
    const lock = tryLock(file)
    if (!lock) throw new Error(`another process took the lock ${file}`)
    return {
      /** Throws MirrorLostError once the file was deleted, replaced or written to: other processes then assume that this one died. */
      assertInPlace(): void {
        const stat = fs.statSync(file, { throwIfNoEntry: false })
        if (stat?.ino !== ino || stat.size > 0) throw lost(file)
      },
      release(): void {
        lock.close()
        removeLock(folder, name)
      },
    }
  } catch (error) {
    throw isRefusal(error) ? refused(folder, error) : translate(folder, error)
  }
}

/** Makes a file or folder with these rights whatever umask says; one that is there keeps its own. */
function makeAs(place: string, mode: number, make: (mode: number) => void): void {
  if (fs.existsSync(place)) return
  try {
    make(mode)
    fs.chmodSync(place, mode)
  } catch (error) {
    // Another process may have been faster.
    if (systemCode(error) !== 'EEXIST') throw error
  }
}

/**
 * Whether the process with this name holds its lock; `none` without a lock file. A lock that this user may not try counts as held. Asking for
 * its own lock, a process would lose it.
 */
export function lockState(folder: string, name: string): 'locked' | 'free' | 'none' {
  const file = path.join(folder, name)
  if (!NAME.test(name) || !isLockFile(file)) return 'none'
  try {
    // SQLite also opens a read-only file, but locks nothing there: every lock would look free.
    fs.accessSync(file, fs.constants.R_OK | fs.constants.W_OK)
    const probe = tryLock(file)
    probe?.close()
    return probe ? 'free' : 'locked'
  } catch {
    // The process may have ended meanwhile.
    return isLockFile(file) ? 'locked' : 'none'
  }
}

/** Deletes the lock file of a dead process, or of this one. A file that cannot be deleted does no harm. */
export function removeLock(folder: string, name: string): void {
  // SQLite puts a journal beside a file while its lock is held.
  for (const file of [name, `${name}-journal`]) attempt(() => fs.unlinkSync(path.join(folder, file)))
}

function sweep(folder: string, isSwept: (name: string, madeAt: number) => boolean): void {
  for (const name of fs.readdirSync(folder).filter((file) => NAME.test(file)))
    attempt(() => {
      const { mtimeMs } = fs.statSync(path.join(folder, name))
      if (isSwept(name, mtimeMs) && lockState(folder, name) === 'free') removeLock(folder, name)
    })
}

/** A regular, empty file. */
function isLockFile(file: string): boolean {
  try {
    const stat = fs.statSync(file, { throwIfNoEntry: false })
    return stat?.isFile() === true && stat.size === 0
  } catch {
    return false
  }
}

/** The lock on a file, as a connection in an open transaction; null when another process has it. */
function tryLock(file: string): Connection | null {
  const connection = openAsItIs(file)
  try {
    connection.exec('BEGIN IMMEDIATE')
    return connection
  } catch (error) {
    connection.close()
    if (isBusy(error)) return null
    throw error
  }
}

function lost(file: string): MirrorLostError {
  return new MirrorLostError(
    `${file} was deleted, so other processes assume that this one died; leave that folder alone while anything runs, and ` +
      'run the command again',
  )
}

function refused(folder: string, error: Error): MirrorError {
  return new MirrorError(
    `this user may not keep a lock file in ${folder} (${error.message}); let it write to that folder, as to the mirror`,
  )
}

function isRefusal(error: unknown): error is Error {
  return ['EACCES', 'EPERM'].includes(systemCode(error) ?? '')
}
