import fs from 'node:fs'
import { Worker } from 'node:worker_threads'
import type { Connection } from './database.ts'

// Moving pages from the write-ahead log into the file is SQLite's to do within a commit, as soon as there are enough. But
// somebody who reads for long holds the log back, and when they end the next commit would move all that has gathered,
// seconds for some hundred megabytes, while nothing else of this process can run. So SQLite is told not to, and it is
// done here after commits: what is little at once, what is much by a thread of its own.

/** Pages that are not in the file yet: SQLite's own measure. */
const ENOUGH_PAGES = 1000

/** Commits after which the log is looked at, and changed rows after which that is done sooner. */
const COMMITS_BETWEEN = 8
const MANY_CHANGES = 500

/** A log of 4,000 pages. It takes some tens of milliseconds to move them all, and to make the log short again. */
const LARGE_BYTES = 16 * 1024 * 1024

/** After a thread was kept from it, by somebody who still reads, the next one is tried so much later. Milliseconds. */
const AGAIN_MS = 5000

/** To be called after commits. */
export type Checkpointer = () => void

/** When a thread began last, and how large the log was. */
export interface LastTry {
  at: number
  bytes: number
}

/** Who is to move what the log holds: nobody, whoever asks, or a thread. */
export function whoMoves(
  log: { pages: number; bytes: number },
  last: LastTry | null,
  now: number,
): 'nobody' | 'here' | 'thread' {
  if (log.bytes <= LARGE_BYTES) return log.pages < ENOUGH_PAGES ? 'nobody' : 'here'
  const isKept = last !== null && now - last.at < AGAIN_MS && log.bytes < last.bytes + LARGE_BYTES
  return isKept ? 'nobody' : 'thread'
}

export function createCheckpointer(connection: Connection, file: string, now: () => number): Checkpointer {
  connection.pragma('wal_autocheckpoint = 0')
  const look = connection.prepare('PRAGMA wal_checkpoint(NOOP)')
  const changes = connection.prepare('SELECT total_changes()').pluck()
  const move = connection.prepare('PRAGMA wal_checkpoint(PASSIVE)')
  // SQLite puts it beside the file, not beside a link that leads there.
  const logFile = `${fs.realpathSync(file)}-wal`
  let last: LastTry | null = null
  let isMoving = false
  let commits = 0
  let changesThen = 0

  /** To look takes as long as a small commit, so it is not done after each. */
  function isWorthLooking(): boolean {
    const changed = changes.get() as number
    if (++commits % COMMITS_BETWEEN !== 0 && changed - changesThen < MANY_CHANGES) return false
    changesThen = changed
    return true
  }

  function moveAside(bytes: number): void {
    last = { at: now(), bytes }
    isMoving = true
    const thread = new Worker(new URL('./checkpoint-thread.ts', import.meta.url), { workerData: file })
    thread.unref()
    // Pages that could not be moved are safe in the log; a file that cannot be written is met by the next commit.
    thread.on('error', () => {})
    thread.on('exit', () => {
      isMoving = false
    })
  }

  return () => {
    try {
      if (!isWorthLooking()) return
      const { log, checkpointed } = look.get() as { log: number; checkpointed: number }
      const bytes = fs.statSync(logFile).size
      const who = isMoving ? 'nobody' : whoMoves({ pages: log - checkpointed, bytes }, last, now())
      if (who === 'here') move.get()
      if (who === 'thread') moveAside(bytes)
    } catch {
      // What was committed is committed. SQLite's own checkpoint within a commit keeps its failures to itself, too.
    }
  }
}
