import fs from 'node:fs'
import path from 'node:path'
import { MirrorError, MirrorLostError, systemCode } from '../../../errors.ts'
import type { Connection } from '../driver.ts'
import { attempt, isBusy, openAsItIs, share, translate } from './open.ts'

// The names of lock files come from the mirror's tables, and other users may write to their folder: this file
// opens and deletes nothing there that is not a lock file by its name and by its kind.

/** `12345-9f86d081d6c1`: the process id, for people, then random digits. */
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
 * Creates a lock file and locks it until `release` or the end of this process. Every user who may write the mirror can try the lock, and delete it after
 * the process's death. `isSwept`: whether the lock file of a dead process is deleted, by its name and the time when it was made (epoch
 * milliseconds).
 */
export function holdLock(
  mirrorFile: string,
  name: string,
  isSwept: (name: string, madeAt: number) => boolean = () => false,
) {
  const folder = leasesFolder(mirrorFile)
  const file = path.join(folder, name)
  if (!NAME.test(name)) throw new Error(`${name} is not the name of a lock file`)
  try {
    const mirror = fs.statSync(mirrorFile)
    makeLeasesFolder(folder, mirror)
    // Before ours exists: a process must not try its own lock.
    sweep(folder, isSwept)
    makeLockFile(file, mirror)
    const made = lockFileAt(file)
    const lock = tryLock(file)
    if (!made || !lock) throw new Error(`another process took the lock ${file}`)
    return {
      /** Throws MirrorLostError once the file was deleted, replaced or written to: other processes then assume that this one died. */
      assertInPlace(): void {
        if (lockFileAt(file)?.ino !== made.ino) throw lost(file)
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

function makeLeasesFolder(folder: string, mirror: fs.Stats): void {
  const readable = mirror.mode & 0o444
  // Listing a folder needs the right to execute it.
  const mode = 0o700 | readable | (readable >> 2) | (mirror.mode & 0o222)
  try {
    fs.mkdirSync(folder, { mode })
  } catch (error) {
    if (isAbsent(folder)) throw error
  }
  assertFolder(folder)
  // Otherwise the mirror's own user could neither try nor delete a lock of root.
  share(folder, fs.constants.O_DIRECTORY, mirror, mode)
}

function makeLockFile(file: string, mirror: fs.Stats): void {
  const { O_RDWR, O_CREAT, O_EXCL } = fs.constants
  share(file, O_RDWR | O_CREAT | O_EXCL, mirror, 0o600 | (mirror.mode & 0o666))
}

/**
 * Whether the process with this name holds its lock; `none` without a lock file. Throws MirrorError if this
 * user cannot tell: the process then counts as alive. Asking for its own lock, a process would lose it.
 */
export function lockState(folder: string, name: string): 'locked' | 'free' | 'none' {
  if (!NAME.test(name)) return 'none'
  const file = path.join(folder, name)
  try {
    assertFolder(folder)
    if (!lockFileAt(file)) return 'none'
    // SQLite also opens a read-only file, but locks nothing there: every lock would look free.
    fs.accessSync(file, fs.constants.R_OK | fs.constants.W_OK)
    const probe = tryLock(file)
    probe?.close()
    return probe ? 'free' : 'locked'
  } catch (error) {
    if (error instanceof MirrorError) throw error
    // The process may have ended meanwhile.
    if (isAbsent(file)) return 'none'
    throw untestable(file, error)
  }
}

/** Deletes the lock file of a dead process, or of this one. A file that cannot be deleted does no harm. */
export function removeLock(folder: string, name: string): void {
  for (const file of [name, `${name}${JOURNAL}`]) attempt(() => fs.unlinkSync(path.join(folder, file)))
}

/** What SQLite puts beside a file while its lock is held. */
const JOURNAL = '-journal'

function sweep(folder: string, isSwept: (name: string, madeAt: number) => boolean): void {
  for (const name of fs.readdirSync(folder)) {
    if (NAME.test(name)) attempt(() => sweepLock(folder, name, isSwept))
  }
}

function sweepLock(folder: string, name: string, isSwept: (name: string, madeAt: number) => boolean): void {
  const made = lockFileAt(path.join(folder, name))
  if (made && isSwept(name, made.mtimeMs) && lockState(folder, name) === 'free') removeLock(folder, name)
}

/** The file's stat, if it can be a lock file: a regular, empty one. */
function lockFileAt(file: string): fs.Stats | null {
  const stat = fs.lstatSync(file, { throwIfNoEntry: false })
  return stat?.isFile() && stat.size === 0 ? stat : null
}

function assertFolder(folder: string): void {
  const stat = fs.lstatSync(folder, { throwIfNoEntry: false })
  if (!stat || stat.isDirectory()) return
  throw new MirrorError(
    `${folder} is not a folder${stat.isSymbolicLink() ? ', but a link' : ''}: lock files are kept there, and no link is ` +
      'followed. Move it away while nothing runs',
  )
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

function untestable(file: string, error: unknown): MirrorError {
  const why = error instanceof Error ? error.message : String(error)
  return new MirrorError(
    `${file} is the lock file of another process, and this user may not test the lock (${why}), so the process counts as ` +
      `alive. Let this user write to ${path.dirname(file)} and to the files in it; if the process is gone, delete its file`,
  )
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

function isAbsent(file: string): boolean {
  let isThere = true
  const isKnown = attempt(() => {
    isThere = fs.lstatSync(file, { throwIfNoEntry: false }) !== undefined
  })
  return isKnown && !isThere
}
