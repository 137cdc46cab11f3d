import fs from 'node:fs'
import path from 'node:path'
import { leasesFolder, removeLock } from '../file/lock-file.ts'
import { runChild } from '../run-child.ts'
import type { CopyResult, CopyTask } from './publish.ts'
import { removeUnfinished } from './unfinished.ts'

const PROGRAM = new URL(`./publish-child${path.extname(import.meta.url)}`, import.meta.url)

/**
 * Makes a copy in a process of its own, which dies with this one, and is killed on the signal; then nothing of it is left. Throws
 * UsageError, MirrorError, and InterruptedError after the signal.
 * @param lockName As `newLockName` makes it: no other process ever has it.
 */
export async function startCopy(task: CopyTask, lockName: string, signal: AbortSignal): Promise<CopyResult> {
  const { mirror, target } = task
  try {
    const options = { file: mirror, what: `copying to ${target}`, signal }
    return (await runChild(PROGRAM, { ...task, lockName }, options)) as CopyResult
  } catch (error) {
    clearAway(mirror, target, lockName)
    throw error
  }
}

/** What a killed process leaves can be larger than the mirror, and nobody may ever make this copy again. */
function clearAway(mirror: string, target: string, lockName: string): void {
  try {
    removeUnfinished(fs.existsSync(target) ? fs.realpathSync(target) : target, lockName)
    removeLock(leasesFolder(mirror), lockName)
  } catch {
    // The next copy does it.
  }
}
