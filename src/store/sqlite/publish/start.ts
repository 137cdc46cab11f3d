import { runChild } from '../run-child.ts'
import type { CopyResult, CopyTask } from './publish.ts'

const PROGRAM = new URL('./publish-child.ts', import.meta.url)

/**
 * Makes a copy in a process of its own, which dies with this one, and is killed on the signal. Throws UsageError, MirrorError, and
 * InterruptedError after the signal.
 */
export async function startCopy(task: CopyTask, signal: AbortSignal): Promise<CopyResult> {
  const what = `copying to ${task.target}`
  return (await runChild(PROGRAM, task, { file: task.mirror, what, signal })) as CopyResult
}
