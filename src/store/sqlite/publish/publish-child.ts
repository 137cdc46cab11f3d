import { constants, setPriority } from 'node:os'
import path from 'node:path'
import { serveParent } from '../child-process.ts'
import { type CopyTask, makeCopy } from './publish.ts'

// The process that `startCopy` starts.

function prepare({ target }: CopyTask): void {
  // SQLite sorts in temporary files, and a container may have no other folder for them.
  process.env.SQLITE_TMPDIR = path.dirname(target)
  try {
    // The syncs go first.
    setPriority(constants.priority.PRIORITY_BELOW_NORMAL)
  } catch {
    // Without it the copy is made all the same.
  }
}

async function work({ lockName, ...task }: CopyTask & { lockName: string }) {
  return makeCopy(task, lockName, Date.now)
}

await serveParent(import.meta.url, work, prepare)
