import fs from 'node:fs'
import path from 'node:path'
import { MirrorError, UsageError } from '../../../errors.ts'
import { holdLock } from '../file/lock-file.ts'
import { translatingErrors } from '../file/open.ts'
import { buildCopy } from './build.ts'
import { assertNumbersOrNothing, type Numbers, numbersFile } from './numbers.ts'
import { assertOwnCopy, type Origin } from './origin.ts'
import {
  belongsToAnother,
  finishFile,
  inspectPlace,
  isCopyFile,
  makePublicFolder,
  ownershipOfPublic,
  type Place,
  roomFor,
  sha256,
  syncFolder,
} from './place.ts'
import { makeUnfinished, modeOfNew, removeUnfinished, sweepUnfinished } from './unfinished.ts'

/** What the child process is asked to do. */
export interface CopyTask {
  /** The mirror's file, or a copy's. */
  mirror: string
  /** Where the copy goes. */
  target: string
  /** Of the files; null: as umask says, or as the file that is replaced. */
  mode: number | null
  /** Whether it is the published file: its folder is made, and its numbers are written beside it. */
  isPublished: boolean
  /** Of the program. */
  version: string
  /** Of which mirror it is, for a published file; null: not known, and nothing is compared. */
  origin: Origin | null
  /** The moment that the copy shows, where it is not that of the copying. Epoch milliseconds. */
  at?: number
}

export interface CopyResult {
  /** Rows of all tables. */
  rows: number
  bytes: number
  /** False if another process has put a later copy there meanwhile. */
  isPlaced: boolean
}

/** What a process brings along. */
export interface CopyProcess {
  now: () => number
  /** For a lock file: no other process ever has it. */
  lockName: string
}

/**
 * Makes a copy in a file beside the target, and moves it there when it is whole: readers of the old one keep it, and a kill leaves it.
 * Throws UsageError for a target that must not be touched, and MirrorError.
 */
export function makeCopy(task: CopyTask, { now, lockName }: CopyProcess): CopyResult {
  const { mirror, target, mode, isPublished } = task
  return translatingErrors(target, () => {
    if (isPublished) makePublicFolder(path.dirname(target), mode ?? 0, fs.statSync(mirror))
    const place = inspectPlace(target)
    if (isPublished) assertNumbersOrNothing(numbersFile(place.file))
    if (isPublished && task.origin) assertOwnCopy(target, place, task.origin)
    const unlock = isCopyFile(mirror) ? () => {} : lockIfPossible(mirror, lockName)
    const isNew = mode === null && place.before === null
    try {
      const fileMode = isNew ? modeOfNew(place.file, lockName) : mode
      const copy = makeUnfinished(place.file, lockName, 0o600)
      // Before the disk is measured: what killed processes left may be what fills it.
      const own = fs.lstatSync(copy)
      sweepUnfinished(mirror, place, own)
      if (
        !isPublished &&
        place.before &&
        belongsToAnother(place.before, fs.statSync(path.dirname(place.file)), own)
      )
        throw new UsageError(`${target} belongs to another user, who would get the copy: name another file`)
      return fill({ ...task, mode: fileMode, place, copy, lockName, now })
    } finally {
      removeUnfinished(place.file, lockName)
      unlock()
    }
  })
}

interface FillOptions extends CopyTask, CopyProcess {
  place: Place
  copy: string
}

function fill({
  mirror,
  mode,
  target,
  place,
  copy,
  lockName,
  now,
  at: shown,
  ...task
}: FillOptions): CopyResult {
  const mostBytes = roomFor(mirror, place)
  if (mostBytes === null)
    throw new MirrorError(
      `there is not room enough for a copy of ${mirror} on the disk of ${target}: make room, or name a file on another disk`,
    )
  let at = new Date(shown ?? now())
  const onBegin = () => {
    at = new Date(shown ?? now())
  }
  const contents = buildCopy({ mirror, file: copy, mostBytes, onBegin })
  const like = task.isPublished ? ownershipOfPublic(fs.statSync(mirror), place) : place.before
  finishFile(copy, { mode, like, at })
  const { size: bytes } = fs.statSync(copy)
  const renames: [from: string, to: string][] = [[copy, place.file]]
  if (task.isPublished) {
    const numbers = numbersFile(place.file)
    const unfinished = makeUnfinished(numbers, lockName, 0o600)
    const text: Numbers = {
      created_at: at.toISOString(),
      version: task.version,
      bytes,
      ...contents,
      sha256: sha256(copy),
      mirror: task.origin && { id: task.origin.id, place: task.origin.place },
    }
    fs.writeFileSync(unfinished, `${JSON.stringify(text, null, 2)}\n`)
    finishFile(unfinished, { mode, like, at })
    renames.push([unfinished, numbers])
  }
  // Another process may have been at it, too: the later moment stays. And what stood there may have been replaced.
  const found = inspectPlace(target)
  const { before } = found
  if (task.isPublished && task.origin) assertOwnCopy(target, found, task.origin)
  const isPlaced = before === null || before.mtimeMs <= at.getTime() || before.mtimeMs > now()
  // When both are whole, so that a full disk does not part them.
  if (isPlaced) for (const [from, to] of renames) fs.renameSync(from, to)
  syncFolder(place.file)
  return { rows: Object.values(contents.rows).reduce((sum, rows) => sum + rows, 0), bytes, isPlaced }
}

/** Who may only read the mirror makes copies without a lock. */
function lockIfPossible(mirror: string, name: string): () => void {
  try {
    return holdLock(mirror, name).release
  } catch {
    return () => {}
  }
}
