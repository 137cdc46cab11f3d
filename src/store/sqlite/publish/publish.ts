import fs from 'node:fs'
import path from 'node:path'
import { MirrorError } from '../../../errors.ts'
import { holdLock } from '../file/lock-file.ts'
import { makeFolder, translatingErrors } from '../file/open.ts'
import { buildCopy } from './build.ts'
import { assertNumbersOrNothing, type Numbers, numbersFile } from './numbers.ts'
import {
  finishFile,
  inspectPlace,
  isCopyFile,
  makeUnfinished,
  type Place,
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
  /** Of the files; null: as umask says, or as the file that is replaced. */
  mode: number | null
  /** Whether it is the published file: its folder is made, and its numbers are written beside it. */
  isPublished: boolean
  /** Of the program. */
  version: string
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
  const { mirror, target, isPublished, mode } = task
  return translatingErrors(target, () => {
    if (isPublished) makeFolder(path.dirname(target))
    const place = inspectPlace(target)
    const numbers = numbersFile(place.file)
    if (isPublished) assertNumbersOrNothing(numbers)
    const mostBytes = roomFor(mirror, place)
    if (mostBytes === null)
      throw new MirrorError(`there is not room enough for a copy of ${mirror} on the disk of ${target}`)
    const unlock = isCopyFile(mirror) ? () => {} : lockIfPossible(mirror, lockName, now())
    const isNew = mode === null && place.before === null
    const files = [makeUnfinished(place.file, lockName, isNew ? 0o666 : 0o600)]
    try {
      const [copy = ''] = files
      sweepUnfinished(mirror, place, fs.lstatSync(copy))
      const { at, contents, isPlaced } = fill({ ...task, place, copy, mostBytes, now })
      const { size: bytes } = fs.statSync(isPlaced ? place.file : copy)
      if (isPlaced && isPublished) {
        const text: Numbers = { created_at: at.toISOString(), version: task.version, bytes, ...contents }
        const unfinished = makeUnfinished(numbers, lockName, 0o600)
        files.push(unfinished)
        fs.writeFileSync(unfinished, `${JSON.stringify(text, null, 2)}\n`)
        finishFile(unfinished, { mode, before: null, at })
        fs.renameSync(unfinished, numbers)
      }
      syncFolder(place.file)
      return { rows: Object.values(contents.rows).reduce((sum, rows) => sum + rows, 0), bytes, isPlaced }
    } finally {
      for (const file of files) fs.rmSync(file, { force: true })
      unlock()
    }
  })
}

interface FillOptions extends CopyTask {
  place: Place
  copy: string
  mostBytes: number
  now: () => number
}

function fill({ mirror, mode, target, place, copy, mostBytes, now, at: shown }: FillOptions) {
  let at = new Date(shown ?? now())
  const onBegin = () => {
    at = new Date(shown ?? now())
  }
  const contents = buildCopy({ mirror, file: copy, mostBytes, onBegin })
  finishFile(copy, { mode, before: place.before, at })
  const sum = sha256(copy)
  // Another process may have been at it, too: the later moment stays. And what stood there may have been replaced.
  const { before } = inspectPlace(target)
  const isPlaced = before === null || before.mtimeMs <= at.getTime() || before.mtimeMs > now()
  if (isPlaced) fs.renameSync(copy, place.file)
  return { at, contents: { ...contents, sha256: sum }, isPlaced }
}

/** Who may only read the mirror makes copies without a lock. */
function lockIfPossible(mirror: string, name: string, now: number): () => void {
  try {
    return holdLock(mirror, name, now - 3_600_000).release
  } catch {
    return () => {}
  }
}
