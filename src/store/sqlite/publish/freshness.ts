import { createHash } from 'node:crypto'
import fs from 'node:fs'
import { open } from 'node:fs/promises'
import { InterruptedError } from '../../../errors.ts'
import type { JobFreshness, MirrorState } from '../../core/mirror-state.ts'
import { translatingErrors } from '../file/open.ts'
import { numbersFile, numbersText, readNumbers } from './numbers.ts'
import { finishFile, syncFolder } from './place.ts'
import { makeUnfinished } from './unfinished.ts'

// How fresh a published file is by now, as NAME.json says: read and written without the file, whose sha256 shows that both belong together.

/** How fresh a published file is by what stands beside it; null where that is about another file, or there is nothing. */
export async function freshnessBeside(copy: string, signal: AbortSignal): Promise<JobFreshness[] | null> {
  try {
    const file = fs.realpathSync(copy)
    const numbers = readNumbers(numbersFile(file))
    if (numbers?.all.bytes !== fs.statSync(file).size) return null
    const hashed = await hashFile(file, signal)
    return hashed?.sha256 === numbers.sha256 ? numbers.jobs : null
  } catch (error) {
    // Who opens the copy says what is wrong with it.
    if (error instanceof Error && 'syscall' in error) return null
    throw error
  }
}

/** A file as it was when it was hashed. */
export interface HashedFile {
  /** Without links. */
  file: string
  sha256: string
  stat: fs.Stats
}

/** Whether a file is still the one that was hashed: neither replaced nor written to. */
export function isUnchanged({ file, stat }: HashedFile): boolean {
  const now = fs.statSync(file, { throwIfNoEntry: false })
  return now !== undefined && IDENTITY.every((name) => now[name] === stat[name])
}

const IDENTITY = ['dev', 'ino', 'size', 'mtimeMs', 'ctimeMs'] as const

const PIECE_BYTES = 1 << 20

/** A gigabyte takes about a second. Null if there is no file, or something else. Throws InterruptedError after the signal. */
export async function hashFile(file: string, signal: AbortSignal): Promise<HashedFile | null> {
  // Before, since opening a device may have effects; after, since the file may have been replaced.
  if (!fs.statSync(file, { throwIfNoEntry: false })?.isFile()) return null
  // Without O_NONBLOCK, opening a pipe waits for a process that writes into it.
  const handle = await open(file, fs.constants.O_RDONLY | fs.constants.O_NONBLOCK)
  try {
    const stat = await handle.stat()
    if (!stat.isFile()) return null
    const hash = createHash('sha256')
    for await (const piece of handle.createReadStream({ autoClose: false, highWaterMark: PIECE_BYTES })) {
      if (signal.aborted)
        throw new InterruptedError(`stopped while ${file} was compared with ${numbersFile(file)}`)
      hash.update(piece as Buffer)
    }
    return { file, sha256: hash.digest('hex'), stat }
  } finally {
    await handle.close()
  }
}

export interface FreshnessTask {
  /** The published file. */
  hashed: HashedFile
  /** What the mirror held at that moment; epoch milliseconds. */
  state: MirrorState
  at: number
  lockName: string
}

/**
 * Writes NAME.json anew, for a file that still shows all that the mirror holds. Returns false where NAME.json is about another file:
 * it then stays, or another process has replaced the file at this moment, and what stands beside it may be ours. Throws MirrorError.
 */
export function writeFreshness({ hashed, state, at, lockName }: FreshnessTask): boolean {
  const { file } = hashed
  return translatingErrors(file, () => {
    const numbers = numbersFile(file)
    const found = readNumbers(numbers)
    if (found?.sha256 !== hashed.sha256 || found.contents !== state.contents) return false
    const unfinished = makeUnfinished(numbers, lockName, 0o600)
    try {
      const current = new Date(at)
      const text = numbersText({ ...found.all, current_at: current.toISOString(), jobs: state.jobs })
      fs.writeFileSync(unfinished, text)
      // For those who may read the file.
      finishFile(unfinished, { mode: null, like: hashed.stat, at: current })
      if (!isUnchanged(hashed)) return false
      fs.renameSync(unfinished, numbers)
      syncFolder(numbers)
      return isUnchanged(hashed)
    } finally {
      fs.rmSync(unfinished, { force: true })
    }
  })
}
