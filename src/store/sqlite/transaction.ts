import fs from 'node:fs'
import { MirrorLostError } from '../../errors.ts'
import type { Rule, Runner } from '../core/sql.ts'
import { assertKnownVersion } from '../schema.ts'
import { type Connection, runRule, SQLITE } from './driver.ts'
import { isBusy, translate, translatingErrors } from './file/errors.ts'

/** What waiting for another process's lock needs. */
export interface Patience {
  now: () => number
  sleep: (ms: number) => Promise<void>
  /** Once it is aborted, no wait is long. */
  signal: AbortSignal
}

/** Runs a rule in one immediate transaction: all of it is written, or nothing. Throws MirrorError. */
export type Transact = <T>(begin: () => Rule<T>) => Promise<T>

/** Runs a task, again while another process holds the file's lock. Throws MirrorError. */
export type LockWait = <T>(task: () => T) => Promise<T>

/** How long a task waits for the lock of another process, and how often it tries. */
const PATIENCE_MS = 30_000
const TRY_LOCK_EVERY_MS = 50

/** All waits for locks together, after the signal to stop. */
const WAITS_WHEN_STOPPING_MS = 2000

/**
 * Waits for locks outside SQLite: a wait inside it would block the event loop, and signals with it. The first try
 * is synchronous.
 */
export function createLockWait(file: string, { now, sleep, signal }: Patience): LockWait {
  let stoppedAt = signal.aborted ? now() : Number.POSITIVE_INFINITY
  signal.addEventListener('abort', () => {
    stoppedAt = now()
  })
  const isStopped = () => now() >= stoppedAt + WAITS_WHEN_STOPPING_MS

  return async (task) => {
    const deadline = now() + PATIENCE_MS
    for (;;) {
      try {
        return task()
      } catch (error) {
        if (!isBusy(error) || now() >= deadline || isStopped()) throw translate(file, error)
        await sleep(TRY_LOCK_EVERY_MS)
      }
    }
  }
}

export function createTransact({ connection, ...patience }: Patience & { connection: Connection }): Transact {
  const file = connection.name
  const wait = createLockWait(file, patience)
  const assertSameFile = createFileCheck(file)
  const version = connection.prepare('PRAGMA user_version').pluck()
  return <T>(begin: () => Rule<T>) => {
    const checked = connection.transaction((): T => {
      assertSameFile()
      // A newer version of the program may have migrated it.
      assertKnownVersion(version.get() as number, file)
      return runRule(connection, begin())
    })
    return wait(checked.immediate)
  }
}

/** The pause between two batches, so that other processes get the file's lock. Milliseconds. */
const REST_MS = 20

/** Runs rules on the file, each that writes in a transaction of its own. */
export function runnerOn(
  connection: Connection,
  transact: Transact,
  { now, sleep, signal }: Patience,
): Runner {
  return {
    dialect: SQLITE,
    isLocal: true,
    now,
    reading: async (rule) => translatingErrors(connection.name, () => runRule(connection, rule)),
    writing: transact,
    async inBatches(batch) {
      for (;;) {
        if (await batch()) return true
        if (!signal.aborted) await sleep(REST_MS)
        if (signal.aborted) return false
      }
    },
  }
}

/**
 * Returns a function that throws MirrorLostError once the file, or its -wal or -shm, was moved, deleted, replaced or emptied: SQLite in WAL mode would
 * not notice, and all later writes would be lost. It opens nothing, since closing any handle of the file drops SQLite's locks.
 */
export function createFileCheck(file: string): () => void {
  const real = fs.realpathSync(file)
  const known = [file, `${real}-wal`, `${real}-shm`].flatMap((name) => {
    const stat = statOf(name)
    return stat ? [{ name, stat }] : []
  })
  return () => {
    for (const { name, stat } of known) {
      const found = statOf(name)
      if (!found) throw lost(name, 'was deleted or moved away')
      // These two numbers identify a file among all that exist at the same time.
      if (found.dev !== stat.dev || found.ino !== stat.ino) throw lost(name, 'was replaced by another file')
      if (name === file && found.size === 0n) throw lost(name, 'was emptied')
    }
  }
}

function lost(file: string, what: string): MirrorLostError {
  return new MirrorLostError(
    `${file} ${what} while it was in use, so nothing more is written; put it back, or run the command again to use what is there`,
  )
}

function statOf(file: string): fs.BigIntStats | undefined {
  return fs.statSync(file, { bigint: true, throwIfNoEntry: false })
}
