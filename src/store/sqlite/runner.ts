import fs from 'node:fs'
import { MirrorLostError } from '../../errors.ts'
import { TABLE_KINDS, tableName } from '../columns/catalog.ts'
import type { Single } from '../core/budgets.ts'
import { all, createStopWatch, exec, one, quoted, type Rule, type Runner } from '../core/sql.ts'
import { knownCollections } from '../core/tables.ts'
import { assertKnownVersion } from '../schema.ts'
import { type Connection, runRule, SQLITE } from './driver.ts'
import { isBusy, translate, translatingErrors } from './errors.ts'

/** What waiting for another process's lock needs. */
export interface Patience {
  now: () => number
  /** Milliseconds of a clock that is never set. */
  elapsed: () => number
  sleep: (ms: number) => Promise<void>
  /** Once it is aborted, no wait is long. */
  signal: AbortSignal
}

/** How long a task waits for the lock of another process, and how often it tries. */
const PATIENCE_MS = 30_000
const TRY_LOCK_EVERY_MS = 50

/**
 * Waits for locks outside SQLite: a wait inside it would block the event loop, and signals with it. The first try
 * is synchronous.
 */
export function createLockWait(file: string, { elapsed, sleep, signal }: Omit<Patience, 'now'>) {
  const isTimeToStop = createStopWatch(signal, elapsed)
  return async <A extends unknown[], T>(task: (...args: A) => T, ...args: A): Promise<T> => {
    const deadline = elapsed() + PATIENCE_MS
    for (;;) {
      try {
        return task(...args)
      } catch (error) {
        if (!isBusy(error) || elapsed() >= deadline || isTimeToStop()) throw translate(file, error)
        await sleep(TRY_LOCK_EVERY_MS)
      }
    }
  }
}

/** The mirror's files are looked at so often: a look takes as long as a dozen small statements. Milliseconds. */
const LOOK_EVERY_MS = 250

/** The pause between two batches, so that other processes get the file's lock. Milliseconds. */
const REST_MS = 20

/** Runs rules on the file, each that writes in an immediate transaction of its own. Throws MirrorError. */
export function runnerOn(connection: Connection, patience: Patience): Runner & { single: Single } {
  const file = connection.name
  const { now, sleep, signal } = patience
  const wait = createLockWait(file, patience)
  const assertSameFiles = createFileCheck(file)
  const version = connection.prepare('PRAGMA user_version').pluck()
  let lookedAt = Number.NEGATIVE_INFINITY

  function look(): void {
    const at = now()
    if (Math.abs(at - lookedAt) < LOOK_EVERY_MS) return
    assertSameFiles()
    lookedAt = at
  }

  const transaction = connection.transaction((begin: () => Rule<unknown>) => {
    look()
    // A newer version of the program may have migrated it.
    assertKnownVersion(version.get() as number, file)
    return runRule(connection, begin())
  })
  const writing = <T>(begin: () => Rule<T>) => wait(transaction.immediate, begin) as Promise<T>

  return {
    dialect: SQLITE,
    isLocal: true,
    now,
    reading: async (rule) =>
      translatingErrors(file, () => {
        look()
        return runRule(connection, rule)
      }),
    writing,
    single: (begin) => wait(() => runRule(connection, begin())),
    async inBatches(batch) {
      for (;;) {
        if (await batch()) return true
        if (!signal.aborted) await sleep(REST_MS)
        if (signal.aborted) return false
      }
    },
    cutLog: async () =>
      translatingErrors(file, () => {
        assertSameFiles()
        connection.pragma('wal_checkpoint(TRUNCATE)')
      }),
    async analyze() {
      for (const table of await writing(tablesToAnalyze))
        if (!signal.aborted)
          await writing(() =>
            exec([`PRAGMA analysis_limit = ${ANALYZED_ROWS}`, `ANALYZE main.${quoted(table)}`]),
          )
    },
  }
}

/**
 * How many rows of each index are read for the statistics by which people's queries are planned: without them the planner assumes that each
 * organization has ten rows. With fewer, it assumes that a large one has only that many; without a limit, SQLite keeps values of the API in `sqlite_stat4`.
 */
export const ANALYZED_ROWS = 100_000

/**
 * A table with fewer rows gets no statistics: with those of one or two rows the planner reads the whole table instead of its index, in our own
 * statements too, and keeps doing so while thousands of rows come.
 */
const LEAST_ROWS = 10

/** The tables that people query without statistics, and those that had a tenth of their rows, or ten times as many, when these were made. */
function* tablesToAnalyze(): Rule<string[]> {
  // 0x02: tables that have changed much, 0x10000: look at all tables, 0x01: only list them.
  const found = yield* all<{ optimize: string }>('PRAGMA optimize = 0x10003')
  const due = new Set(found.map(({ optimize }) => optimize))
  const tables: string[] = []
  for (const { name } of yield* knownCollections())
    for (const table of TABLE_KINDS.map((kind) => tableName(name, kind))) {
      const tenth = `SELECT 1 FROM ${quoted(table)} LIMIT 1 OFFSET ${LEAST_ROWS - 1}`
      if (due.has(`ANALYZE "main".${quoted(table)}`) && (yield* one(tenth))) tables.push(table)
    }
  return tables
}

/**
 * Returns a function that throws MirrorLostError once the file, or its -wal or -shm, was moved, deleted, replaced or emptied: SQLite in WAL mode would
 * not notice, and all later writes would be lost. It opens nothing, since closing any handle of the file drops SQLite's locks.
 */
function createFileCheck(file: string): () => void {
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
