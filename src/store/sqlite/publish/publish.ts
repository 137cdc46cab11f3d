import fs from 'node:fs'
import path from 'node:path'
import { MirrorError, UsageError } from '../../../errors.ts'
import { runChild } from '../child-process.ts'
import { leasesFolder, removeLock } from '../file/lock-file.ts'
import { translatingErrors } from '../file/open.ts'
import { buildCopy } from './build.ts'
import { assertNumbersOrNothing, assertOwnCopy, numbersText, type Origin } from './numbers.ts'
import {
  belongsToAnother,
  finishFile,
  inspectPlace,
  isCopyFile,
  lockIfPossible,
  makePublicFolder,
  makeUnfinished,
  modeOfNew,
  numbersFile,
  ownershipOfPublic,
  type Place,
  removeUnfinished,
  roomFor,
  sha256,
  sweepUnfinished,
  syncFolder,
} from './place.ts'

/** What the child process is asked to do. */
export interface CopyTask {
  /** The mirror's file, or a copy's. */
  mirror: string
  /** Where the copy goes. */
  target: string
  /** The mode of the files; null: what umask says, or the mode of the file that is replaced. */
  mode: number | null
  /** For the published file: its folder is made, and these go into the numbers beside it. Null: a snapshot. */
  published: PublishedCopy | null
  /** The moment that the copy shows, if it is not the time of copying. Epoch milliseconds. */
  at?: number
}

export interface PublishedCopy {
  /** Of the program. */
  version: string
  /** Of which mirror it is; null: not known, and nothing is compared. */
  origin: Origin | null
  /** What the mirror held before the moment that the copy shows: see `MirrorState`. */
  contents: string
  /** When the work began that ends with this copy. Epoch milliseconds. */
  begunAt: number
}

export interface CopyResult {
  /** Rows of all tables. */
  rows: number
  bytes: number
  /** False if another process has put a later copy there meanwhile. */
  isPlaced: boolean
}

/**
 * Makes a copy in a file beside the target, and renames it to the target when it is whole: readers of the old one keep that, and a kill leaves it.
 * Throws UsageError for a target that must not be touched, and MirrorError.
 * @param lockName As `newLockName` makes it: no other process ever has it.
 */
export function makeCopy(task: CopyTask, lockName: string, now: () => number): CopyResult {
  const { mirror, target, mode, published } = task
  return translatingErrors(target, () => {
    const like = fs.statSync(mirror)
    if (published) makePublicFolder(path.dirname(target), mode ?? 0, like)
    const place = inspectPlace(target)
    if (published) assertNumbersOrNothing(numbersFile(place.file))
    if (published?.origin) assertOwnCopy(target, place, published.origin)
    const lock = isCopyFile(mirror) ? null : lockIfPossible(mirror, lockName)
    const isNew = mode === null && place.before === null
    try {
      const fileMode = isNew ? modeOfNew(place.file, lockName) : mode
      const copy = makeUnfinished(place.file, lockName, 0o600)
      // Before the free space is measured: what killed processes left may fill the disk.
      const own = fs.lstatSync(copy)
      sweepUnfinished(lock, place.file, own)
      // The files may belong to the service whose mirror this is, even if root writes them now.
      const owners = published ? [own, like] : [own]
      for (const file of published ? [place.file, numbersFile(place.file)] : [place.file])
        assertNotOfAnother(file, owners)
      return fill({ ...task, mode: fileMode }, place, copy, lockName, now)
    } finally {
      removeUnfinished(place.file, lockName)
      lock?.release()
    }
  })
}

function assertNotOfAnother(file: string, owners: readonly fs.Stats[]): void {
  const before = fs.lstatSync(file, { throwIfNoEntry: false })
  if (before && belongsToAnother(before, [fs.statSync(path.dirname(file)), ...owners]))
    throw new UsageError(`${file} belongs to another user, who would get the copy: name another file`)
}

function fill(
  { mirror, mode, target, at: shown, published }: CopyTask,
  place: Place,
  copy: string,
  lockName: string,
  now: () => number,
): CopyResult {
  const mostBytes = roomFor(mirror, place)
  if (mostBytes === null)
    throw new MirrorError(
      `there is not enough room for a copy of ${mirror} on the disk of ${target}: make room, or name a file on another disk`,
    )
  let at = new Date(shown ?? now())
  const onBegin = () => {
    at = new Date(shown ?? now())
  }
  const contents = buildCopy(mirror, copy, mostBytes, onBegin)
  const like = published ? ownershipOfPublic(fs.statSync(mirror), place) : place.before
  finishFile(copy, mode, like, at)
  const { size: bytes } = fs.statSync(copy)
  const renames: [from: string, to: string][] = [[copy, place.file]]
  if (published) {
    const { version, origin, begunAt } = published
    const numbers = numbersFile(place.file)
    const unfinished = makeUnfinished(numbers, lockName, 0o600)
    const text = numbersText({
      created_at: at.toISOString(),
      current_at: at.toISOString(),
      version,
      bytes,
      ...contents,
      sha256: sha256(copy),
      mirror: origin && { id: origin.id, place: origin.place },
      contents: published.contents,
      duration_ms: Math.max(0, now() - begunAt),
    })
    fs.writeFileSync(unfinished, text)
    finishFile(unfinished, mode, like, at)
    renames.push([unfinished, numbers])
  }
  // Another process may have made a copy meanwhile: the one of the later moment stays. And the target may have been replaced by something else.
  const found = inspectPlace(target)
  const { before } = found
  if (published?.origin) assertOwnCopy(target, found, published.origin)
  const isPlaced = before === null || before.mtimeMs <= at.getTime() || before.mtimeMs > now()
  // Once both files are whole, so that a full disk cannot leave a new copy with old numbers.
  if (isPlaced) for (const [from, to] of renames) fs.renameSync(from, to)
  syncFolder(place.file)
  return { rows: Object.values(contents.rows).reduce((sum, rows) => sum + rows, 0), bytes, isPlaced }
}

const PROGRAM = new URL(`./publish-child${path.extname(import.meta.url)}`, import.meta.url)

/**
 * Makes a copy in a process of its own, which dies with this one, and is killed on the signal; then nothing of it is left. Throws
 * UsageError, MirrorError, and InterruptedError after the signal.
 * @param lockName As `newLockName` makes it: no other process ever has it.
 */
export async function startCopy(task: CopyTask, lockName: string, signal: AbortSignal): Promise<CopyResult> {
  const { mirror, target } = task
  try {
    const asked = { ...task, lockName, file: mirror, what: `copying to ${target}` }
    return (await runChild(PROGRAM, asked, signal)) as CopyResult
  } catch (error) {
    clearAway(mirror, target, lockName)
    throw error
  }
}

/** Deletes what a killed process has left: it can be larger than the mirror, and this copy may never be made again. */
function clearAway(mirror: string, target: string, lockName: string): void {
  try {
    removeUnfinished(fs.existsSync(target) ? fs.realpathSync(target) : target, lockName)
    removeLock(leasesFolder(mirror), lockName)
  } catch {
    // The next copy does it.
  }
}
