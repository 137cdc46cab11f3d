import { type Connection, guarded, isBusy, translate } from './database.ts'

export interface TransactionOptions {
  connection: Connection
  file: string
  now: () => number
  sleep: (ms: number) => Promise<void>
  /** Once it is aborted, nobody waits long any more. */
  signal: AbortSignal
  /** Told when a transaction is undone: what was remembered of the tables may be wrong. */
  onRollback: () => void
}

/** Runs a synchronous task in one immediate transaction: all of it is written, or nothing. */
export type Transact = <T>(task: () => T) => Promise<T>

/** How long another process may hold the lock before we give up, and how often we look. */
const PATIENCE_MS = 30_000
const LOOK_EVERY_MS = 50

/** All that is waited for locks, by all transactions together, after the process was told to stop. */
const STOPPING_MS = 2000

export function createTransact(options: TransactionOptions): Transact {
  const { connection, file, now, sleep, signal, onRollback } = options
  let stoppedAt = Number.POSITIVE_INFINITY
  signal.addEventListener('abort', () => {
    stoppedAt = now()
  })
  return async (task) => {
    const deadline = now() + PATIENCE_MS
    for (;;) {
      try {
        return connection.transaction(task).immediate()
      } catch (error) {
        onRollback()
        // Waiting inside SQLite would block everything else in this process, so the wait is ours.
        if (!isBusy(error) || now() >= Math.min(deadline, stoppedAt + STOPPING_MS))
          throw translate(file, error)
        await sleep(LOOK_EVERY_MS)
      }
    }
  }
}

/**
 * The same for a short write that must not be lost, by a caller that cannot wait: so the wait is inside SQLite. Throws
 * MirrorError.
 */
export function writePatiently<T>(connection: Connection, task: () => T): T {
  const usual = connection.pragma('busy_timeout', { simple: true }) as number
  return guarded(connection.name, () => {
    connection.pragma(`busy_timeout = ${PATIENCE_MS}`)
    try {
      return connection.transaction(task).immediate()
    } finally {
      connection.pragma(`busy_timeout = ${usual}`)
    }
  })
}
