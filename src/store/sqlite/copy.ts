import fs from 'node:fs'
import { open } from 'node:fs/promises'
import path from 'node:path'
import { Worker } from 'node:worker_threads'
import { InterruptedError, MirrorError, systemCode, UsageError } from '../../errors.ts'
import { freeBytes, translate, translatingErrors } from './errors.ts'
import { inspectHeader } from './open.ts'

// The published file and snapshots: a copy is made beside its target and renamed to it when it is whole, so that readers of the old one keep
// that, and a kill leaves it.

export interface CopyTask {
  /** The mirror's file, or a copy's. */
  mirror: string
  /** Where the copy goes. */
  target: string
  /** When it is begun, epoch milliseconds: the file's time. */
  at: number
  /**
   * Of the published file, its mode, whatever umask says: it is without the workings of the program, and has tables in place of slow views. Null: a
   * snapshot, which can be put in the mirror's place.
   */
  publishMode: number | null
}

const THREAD = new URL(`./copy-thread${path.extname(import.meta.url)}`, import.meta.url)

/**
 * Makes a copy; SQLite works in a thread of its own. Returns its bytes. Throws UsageError for a target that must not be touched, MirrorError,
 * and InterruptedError after the signal.
 * @param name For the unfinished file: no other process ever has it.
 */
export async function copyMirror(task: CopyTask, name: string, signal: AbortSignal): Promise<number> {
  const { mirror, publishMode: mode, at } = task
  const target = mode === null ? task.target : fileToReplace(task.target, mode)
  const unfinished = `${beginOfUnfinished(target)}${name}${UNFINISHED}`
  try {
    // SQLite takes an empty file for a new one. While it is made, only its owner may read it.
    fs.closeSync(fs.openSync(unfinished, 'wx', mode === null ? 0o666 : 0o600))
    removeLeft(target, fs.statSync(unfinished).mtimeMs)
    assertRoom(mirror, unfinished)
    await fillInThread({ ...task, target: unfinished }, signal)
    const handle = await open(unfinished, 'r+')
    try {
      if (mode !== null) await handle.chmod(mode)
      await handle.utimes(at / 1000, at / 1000)
      // Gigabytes may wait for the disk here.
      await handle.sync()
    } finally {
      await handle.close()
    }
    fs.renameSync(unfinished, target)
    // Makes the rename last through a loss of power.
    const folder = fs.openSync(path.dirname(target), 'r')
    fs.fsyncSync(folder)
    fs.closeSync(folder)
    return fs.statSync(target).size
  } catch (error) {
    if (systemCode(error) === 'EBUSY')
      throw new UsageError(
        `publish: ${target} cannot be replaced, since this one file is mounted: mount its folder ${path.dirname(target)} instead`,
      )
    throw translate(target, error)
  } finally {
    fs.rmSync(unfinished, { force: true })
  }
}

/** The file itself, not a link to it; its folder is made, open to those who may read files of this mode. Throws UsageError for another file than a copy. */
function fileToReplace(target: string, mode: number): string {
  const readable = mode & 0o444
  translatingErrors(target, () => makeFolder(path.dirname(target), 0o700 | readable | (readable >> 2)))
  const place = fs.existsSync(target) ? fs.realpathSync(target) : target
  if (mayReplace(place)) return place
  throw new UsageError(
    `publish: ${target} exists and is not a copy of a mirror, so it is left as it is; name another file, or move it away`,
  )
}

/** Whatever umask says. */
function makeFolder(folder: string, mode: number): void {
  if (fs.existsSync(folder)) return
  makeFolder(path.dirname(folder), mode)
  fs.mkdirSync(folder)
  fs.chmodSync(folder, mode)
}

/** Whether the published file may be put here: there is nothing, an empty file, or one that was published. */
export function mayReplace(file: string): boolean {
  return ['none', 'copy'].includes(inspectHeader(file).kind)
}

/** Less than this would not last for the copy, and the syncs need the room. */
function assertRoom(mirror: string, copy: string): void {
  const needed = [mirror, `${mirror}-wal`]
    .map((file) => fs.statSync(file, { throwIfNoEntry: false })?.size ?? 0)
    .reduce((sum, size) => sum + size)
  if ((freeBytes(copy) ?? needed) < needed) throw noRoom(mirror)
}

function noRoom(mirror: string): MirrorError {
  return new MirrorError(
    `there is not enough room for a copy of ${mirror}: make room, or name a file on another disk`,
  )
}

const UNFINISHED = '.unfinished'

function beginOfUnfinished(target: string): string {
  return path.join(path.dirname(target), `.${path.basename(target)}.`)
}

/** A younger file may belong to a process that is at work on it. */
const LEFT_AFTER_MS = 3_600_000

/** Deletes what killed processes have left: it is as large as the mirror. `now`: epoch milliseconds, of the file system. */
function removeLeft(target: string, now: number): void {
  const folder = path.dirname(target)
  for (const file of fs.readdirSync(folder).map((name) => path.join(folder, name))) {
    if (!file.startsWith(beginOfUnfinished(target)) || !file.endsWith(UNFINISHED)) continue
    const stat = fs.lstatSync(file, { throwIfNoEntry: false })
    if (stat && now - stat.mtimeMs > LEFT_AFTER_MS) fs.rmSync(file, { force: true })
  }
}

async function fillInThread(task: CopyTask, signal: AbortSignal): Promise<void> {
  const worker = new Worker(THREAD, { workerData: task })
  const ended = new AbortController()
  await new Promise<void>((resolve, reject) => {
    worker.once('exit', () => resolve())
    worker.once('error', (error) => {
      const isFull = systemCode(error) === 'SQLITE_FULL'
      reject(isFull ? noRoom(task.mirror) : translate(task.mirror, error))
    })
    // SQLite goes on until the process ends; nothing waits for it.
    const stop = () => reject(new InterruptedError('stopped; the copy was not made'))
    if (signal.aborted) stop()
    else signal.addEventListener('abort', stop, { signal: ended.signal })
  }).finally(() => {
    // A service makes many copies under one signal.
    ended.abort()
    void worker.terminate()
  })
}
