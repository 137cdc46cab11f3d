import { createCheckpointer } from './checkpointer.ts'
import { type Connection, createVersionCheck, isBusy, translate } from './database.ts'
import { createWhereabouts } from './whereabouts.ts'

/** What waiting for another process's lock takes. */
export interface Patience {
  now: () => number
  sleep: (ms: number) => Promise<void>
  /** Once it is aborted, nobody waits long any more. */
  signal: AbortSignal
}

/** Runs a synchronous task that may find the file locked, again and again until it does not. Throws MirrorError. */
export type LockWait = <T>(task: () => T) => Promise<T>

/** Runs a synchronous task in one immediate transaction: all of it is written, or nothing. Throws MirrorError. */
export type Transact = <T>(task: () => T) => Promise<T>

export interface TransactionOptions extends Patience {
  connection: Connection
  file: string
  /** Told when a transaction is undone: what was remembered of the tables may be wrong. */
  onRollback?: () => void
}

/** How long another process may hold the lock before we give up, and how often we look. */
const PATIENCE_MS = 30_000
const LOOK_EVERY_MS = 50

/** All that is waited for locks, by all tasks together, after the process was told to stop. */
const STOPPING_MS = 2000

/**
 * Waiting inside SQLite would block everything else in this process, signals among it, so the wait is ours. The first
 * try is made at once, before anything else can run.
 */
export function createLockWait(file: string, { now, sleep, signal }: Patience): LockWait {
  let stoppedAt = signal.aborted ? now() : Number.POSITIVE_INFINITY
  signal.addEventListener('abort', () => {
    stoppedAt = now()
  })
  return async (task) => {
    const deadline = now() + PATIENCE_MS
    for (;;) {
      try {
        return task()
      } catch (error) {
        if (!isBusy(error) || now() >= Math.min(deadline, stoppedAt + STOPPING_MS))
          throw translate(file, error)
        await sleep(LOOK_EVERY_MS)
      }
    }
  }
}

export function createTransact({ connection, file, onRollback, ...patience }: TransactionOptions): Transact {
  const wait = createLockWait(file, patience)
  const assertThere = createWhereabouts(file)
  const assertKnown = createVersionCheck(connection, file)
  const checkpoint = createCheckpointer(connection, file, patience.now)
  const inPlace = <T>(task: () => T) => {
    assertThere()
    assertKnown()
    return task()
  }
  return async (task) => {
    const result = await wait(() => {
      try {
        return connection.transaction(() => inPlace(task)).immediate()
      } catch (error) {
        onRollback?.()
        throw error
      }
    })
    checkpoint()
    return result
  }
}
