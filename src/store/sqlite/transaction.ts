import { type Connection, createVersionCheck, isBusy, translate } from './file/open.ts'
import { createWhereabouts } from './file/same-file.ts'
import { maintenanceUnderWay } from './maintenance-notice.ts'
import { withoutForeignKeys } from './tables/rebuild-table.ts'

/** What waiting for another process's lock takes. */
export interface Patience {
  now: () => number
  sleep: (ms: number) => Promise<void>
  /** Once it is aborted, nobody waits long any more. */
  signal: AbortSignal
  /** Reports what this process waits for, or does, for long. */
  report?: ((message: string) => void) | undefined
}

/** Runs a synchronous task that may find the file locked, again and again until it does not. Throws MirrorError. */
export type LockWait = <T>(task: () => T) => Promise<T>

/**
 * Runs a synchronous task in one immediate transaction: all of it is written, or nothing. Throws MirrorError. With `rebuilding`
 * it may rebuild tables.
 */
export type Transact = <T>(task: () => T, kind?: 'rebuilding') => Promise<T>

export interface TransactionOptions extends Patience {
  connection: Connection
  file: string
  /** Told when a transaction is undone: what was remembered of the tables may be wrong. */
  onRollback?: () => void
}

/** How long another process may hold the lock before we give up, and how often we look. */
const PATIENCE_MS = 30_000
const LOOK_EVERY_MS = 50

/** How often we look whether another process has ended its long work. */
const LOOK_AT_WORK_EVERY_MS = 250

/** All that is waited for locks, by all tasks together, after the process was told to stop. */
const STOPPING_MS = 2000

/**
 * Waiting inside SQLite would block everything else in this process, signals among it, so the wait is ours. The first
 * try is made at once, before anything else can run. `underWay` says what another living process does on the file for
 * long, if anything: that is waited for as long as it takes.
 */
export function createLockWait(
  file: string,
  { now, sleep, signal, report }: Patience,
  underWay: () => string | null = () => null,
): LockWait {
  let stoppedAt = signal.aborted ? now() : Number.POSITIVE_INFINITY
  signal.addEventListener('abort', () => {
    stoppedAt = now()
  })
  const isStopped = () => now() >= stoppedAt + STOPPING_MS

  /** No lock is tried meanwhile, since each try blocks the event loop for a moment. Returns whether there was any. */
  async function waitForMaintenance(): Promise<boolean> {
    for (let reported = false; ; reported = true) {
      const what = underWay()
      if (what === null || isStopped()) return reported
      if (!reported) report?.(`waiting for the mirror: ${what}`)
      await sleep(LOOK_AT_WORK_EVERY_MS)
    }
  }

  return async (task) => {
    let deadline = now() + PATIENCE_MS
    for (;;) {
      try {
        return task()
      } catch (error) {
        if (!isBusy(error)) throw translate(file, error)
        if (await waitForMaintenance()) deadline = now() + PATIENCE_MS
        if (now() >= deadline || isStopped()) throw translate(file, error)
        await sleep(LOOK_EVERY_MS)
      }
    }
  }
}

export function createTransact({ connection, file, onRollback, ...patience }: TransactionOptions): Transact {
  const wait = createLockWait(file, patience, () => maintenanceUnderWay(connection))
  const assertThere = createWhereabouts(file)
  const assertKnown = createVersionCheck(connection, file)
  const inPlace = <T>(task: () => T) => {
    assertThere()
    assertKnown()
    return task()
  }
  return (task, kind) => {
    const attempt = () => connection.transaction(() => inPlace(task)).immediate()
    return wait(() => {
      try {
        return kind === 'rebuilding' ? withoutForeignKeys(connection, attempt) : attempt()
      } catch (error) {
        onRollback?.()
        throw error
      }
    })
  }
}
