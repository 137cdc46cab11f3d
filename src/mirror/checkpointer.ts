import fs from 'node:fs'
import { Worker } from 'node:worker_threads'
import type { Connection } from './database.ts'
import { createLogFlush } from './log-flush.ts'

// Moving pages from the write-ahead log into the file is SQLite's to do within a commit, as soon as there are enough. But
// somebody who reads for long holds the log back, and when they end the next commit would move all that has gathered,
// seconds for some hundred megabytes, while nothing else of this process can run. So SQLite is told not to, and it is
// done here after commits: what is little at once, what is much by a thread of its own.
//
// Half of what moving takes is that SQLite waits, before for the log and behind for the file, to stand on the disk. So a
// little before there is enough to move, a thread of Node's pool has the log written out, and nobody waits for it; of what
// comes after that SQLite is soon done. (The file cannot be treated so: to close a handle of it drops the locks that SQLite
// holds.) With that, and with 2,000 pages instead of SQLite's 1,000, a first sync of 2,000 pages waits 0.25 s in all
// instead of 0.47. A thread that stays and moves all of it was no gain: it has to begin again whenever somebody commits
// meanwhile, at the price of 3 % more CPU and 11 MB.

/** Pages that are not in the file yet. A log of 8 MB; to move them takes some ten milliseconds. */
const ENOUGH_PAGES = 2000

/** From here on the log is written out: so near to enough that little is added, and more than comes between two looks. */
const NEARLY_PAGES = 1700

/** Commits after which the log is looked at, and changed rows after which that is done sooner. */
const COMMITS_BETWEEN = 8
const MANY_CHANGES = 330

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

/** Who is to move what the log holds: nobody, nobody yet (but it is to be written out), whoever asks, or a thread. */
export function whoMoves(
  log: { pages: number; bytes: number },
  last: LastTry | null,
  now: number,
): 'nobody' | 'nobody yet' | 'here' | 'thread' {
  if (log.bytes > LARGE_BYTES) {
    const isKept = last !== null && now - last.at < AGAIN_MS && log.bytes < last.bytes + LARGE_BYTES
    return isKept ? 'nobody' : 'thread'
  }
  if (log.pages >= ENOUGH_PAGES) return 'here'
  return log.pages < NEARLY_PAGES ? 'nobody' : 'nobody yet'
}

export function createCheckpointer(connection: Connection, file: string, now: () => number): Checkpointer {
  connection.pragma('wal_autocheckpoint = 0')
  const look = connection.prepare('PRAGMA wal_checkpoint(NOOP)')
  const changes = connection.prepare('SELECT total_changes()').pluck()
  const move = connection.prepare('PRAGMA wal_checkpoint(PASSIVE)')
  // SQLite puts it beside the file, not beside a link that leads there.
  const logFile = `${fs.realpathSync(file)}-wal`
  const flush = createLogFlush(logFile)
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
      if (who === 'nobody yet') flush.begin()
      if (who === 'here') {
        move.get()
        flush.reset()
      }
      if (who === 'thread') moveAside(bytes)
    } catch {
      // What was committed is committed. SQLite's own checkpoint within a commit keeps its failures to itself, too.
    }
  }
}
