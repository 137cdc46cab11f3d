import fs from 'node:fs'
import { MirrorLostError } from '../../errors.ts'
import type { Runner } from '../core/sql.ts'
import { type Connection, runRule, SQLITE } from './driver.ts'
import { createVersionCheck, isBusy, translate, translatingErrors } from './file/open.ts'

/** What waiting for another process's lock needs. */
export interface Patience {
  now: () => number
  sleep: (ms: number) => Promise<void>
  /** Once it is aborted, no wait is long. */
  signal: AbortSignal
}

/** Runs a synchronous task in one immediate transaction: all of it is written, or nothing. Throws MirrorError. */
export type Transact = <T>(task: () => T) => Promise<T>

/** How long a task waits for the lock of another process, and how often it tries. */
const PATIENCE_MS = 30_000
const TRY_LOCK_EVERY_MS = 50

/** All waits for locks together, after the signal to stop. */
const WAITS_WHEN_STOPPING_MS = 2000

/**
 * Waits for locks outside SQLite: a wait inside it would block the event loop, and signals with it. The first try
 * is synchronous. Returns a function that retries a task while it finds the file locked, and throws MirrorError.
 */
export function createLockWait(file: string, { now, sleep, signal }: Patience) {
  let stoppedAt = signal.aborted ? now() : Number.POSITIVE_INFINITY
  signal.addEventListener('abort', () => {
    stoppedAt = now()
  })
  const isStopped = () => now() >= stoppedAt + WAITS_WHEN_STOPPING_MS

  return async <T>(task: () => T): Promise<T> => {
    const deadline = now() + PATIENCE_MS
    for (;;) {
      try {
        return task()
      } catch (error) {
        if (!isBusy(error)) throw translate(file, error)
        if (now() >= deadline || isStopped()) throw translate(file, error)
        await sleep(TRY_LOCK_EVERY_MS)
      }
    }
  }
}

export function createTransact({ connection, ...patience }: Patience & { connection: Connection }): Transact {
  const file = connection.name
  const wait = createLockWait(file, patience)
  const assertSameFile = createFileCheck(file)
  const assertKnownVersion = createVersionCheck(connection, file)
  const checked = <T>(task: () => T) => {
    assertSameFile()
    assertKnownVersion()
    return task()
  }
  return (task) => wait(() => connection.transaction(() => checked(task)).immediate())
}

/** The pause between two batches, so that other processes get the file's lock. Milliseconds. */
const REST_MS = 20

/**
 * Does long work in transactions of some tens of milliseconds. `batch` returns true when nothing is left.
 * Returns false if the signal came before that; the first batch runs even then.
 */
export async function inBatches(
  { sleep, signal }: Pick<Patience, 'sleep' | 'signal'>,
  batch: () => boolean | Promise<boolean>,
): Promise<boolean> {
  for (;;) {
    if (await batch()) return true
    if (!signal.aborted) await sleep(REST_MS)
    if (signal.aborted) return false
  }
}

/** Runs rules on the file, each that writes in a transaction of its own. */
export function runnerOn(
  connection: Connection,
  transact: Transact,
  patience: Pick<Patience, 'now' | 'sleep' | 'signal'>,
): Runner {
  return {
    dialect: SQLITE,
    isLocal: true,
    now: patience.now,
    reading: async (rule) => translatingErrors(connection.name, () => runRule(connection, rule)),
    writing: (begin) => transact(() => runRule(connection, begin())),
    inBatches: (batch) => inBatches(patience, batch),
  }
}

/**
 * Returns a function that throws MirrorLostError once the file, or its -wal or -shm, was moved, deleted,
 * replaced or emptied: SQLite in WAL mode would not notice, and all later writes would be lost. It opens
 * nothing, since closing any handle of the file drops SQLite's locks.
 */
export function createFileCheck(file: string): () => void {
  const first = statOf(file)
  const real = fs.realpathSync(file)
  const beside = [`${real}-wal`, `${real}-shm`].flatMap((name) => {
    const stat = statOf(name)
    return stat ? { name, stat } : []
  })
  return () => {
    const stat = statOf(file)
    if (!stat)
      throw lost(file, 'was deleted or moved away', 'put it back, or run the command again to make a new one')
    if (!isSame(stat, first))
      throw lost(file, 'was replaced by another file', 'run the command again to use the new file')
    if (stat.size === 0n)
      throw lost(
        file,
        'was emptied',
        'delete it with its -wal and -shm, or put a copy in their place, and run the command again',
      )
    for (const one of beside) {
      if (!isSame(statOf(one.name), one.stat))
        throw lost(one.name, 'was deleted or replaced', 'leave it alone, and run the command again')
    }
  }
}

type Stat = fs.BigIntStats | undefined

function statOf(file: string): Stat {
  return fs.statSync(file, { bigint: true, throwIfNoEntry: false })
}

/** A file by the two numbers that identify it among all files that exist at the same time. */
function isSame(one: Stat, other: Stat): boolean {
  return one?.dev === other?.dev && one?.ino === other?.ino
}

function lost(file: string, what: string, advice: string): MirrorLostError {
  return new MirrorLostError(`${file} ${what} while it was in use, so nothing more is written; ${advice}`)
}
