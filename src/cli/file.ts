import path from 'node:path'
import { createBudgets } from '../store/core/budgets.ts'
import { publishFailure } from '../store/core/publication.ts'
import type { MirrorFacts } from '../store/core/status.ts'
import { type Connection, runRule } from '../store/sqlite/driver.ts'
import { freeBytes, fullDisk, translatingErrors, unwritableNow } from '../store/sqlite/errors.ts'
import { inspectHeader, openForReading, openForWriting, strangerFault } from '../store/sqlite/open.ts'
import { assertReadingSql, queryFile, readFileFacts, typesOf } from '../store/sqlite/read.ts'
import { createLockWait, runnerOn } from '../store/sqlite/runner.ts'
import type { Database } from './mirror.ts'
import { type MirrorPlace, noMirror } from './place.ts'
import type { Reader, SqlParameters } from './reading.ts'
import type { Runtime } from './runtime.ts'

// A mirror in a file.

/** Opens the mirror, or makes it. Throws MirrorError. */
export async function openFile(file: string, runtime: Runtime): Promise<Database> {
  // SQLite writes what outgrows its cache to a file. A container with a read-only root may have no other writable folder.
  runtime.env.SQLITE_TMPDIR ??= path.dirname(file)
  const connection = await openConnection(file, runtime)
  const runner = runnerOn(connection, runtime)
  return {
    runner,
    budgets: createBudgets(runner),
    async probe() {
      // Any read shows whether the mirror can be read; what it returns is not needed.
      await runner.reading(publishFailure())
      return unwritableNow(file)
    },
    facts: async () => readFileFacts(connection, runtime.isAlive, runtime.now()),
    close: async () => void connection.close(),
  }
}

/** Opens the file for writing, or makes it. */
export function openConnection(file: string, runtime: Runtime): Promise<Connection> {
  return createLockWait(file, runtime)(() => openForWriting(file))
}

/** Opens it for reading. Throws MirrorError where there is nothing to read. */
export function openMirrorFile(file: string): Connection {
  const connection = openForReading(file)
  if (connection) return connection
  throw noMirror(file)
}

/** What `status` reads; null if there is no mirror yet. */
export function factsInFile(
  { database, config }: MirrorPlace,
  { isAlive, now }: Runtime,
): MirrorFacts | null {
  const connection = config ? openForReading(database) : openMirrorFile(database)
  try {
    return connection && readFileFacts(connection, isAlive, now())
  } finally {
    connection?.close()
  }
}

/** Why the mirror cannot be written now, for `status`. Of a file that the user named, it is not known who writes it, but on a full disk nobody can. A copy, not in WAL mode, is never written. */
export function writeFault({ database, config }: MirrorPlace): string | null {
  const { kind, isInWal } = inspectHeader(database)
  if (config) return strangerFault(database, kind) ?? unwritableNow(database)
  return isInWal ? fullDisk(database, freeBytes(database)) : null
}

/** Reads from the file, which is opened once that is needed: what was typed is looked at before. Throws UsageError and MirrorError. */
export async function readFile(place: MirrorPlace, read: (reader: Reader) => Promise<void>): Promise<void> {
  const { database } = place
  let connection = null as Connection | null
  const opened = () => {
    connection ??= openMirrorFile(database)
    return connection
  }
  try {
    await read({
      isThere: () => translatingErrors(database, () => inspectHeader(database)).kind !== 'none',
      ask: async (rule) => translatingErrors(database, () => runRule(opened(), rule)),
      async query(sql, parameters) {
        const values = valuesOf(parameters)
        if (connection === null) assertReadingSql(sql, values)
        return queryFile(opened(), sql, values)
      },
      typesOf: (name) => typesOf(opened(), name),
    })
  } finally {
    connection?.close()
  }
}

const [LEAST, MOST] = [-(2n ** 63n), 2n ** 63n - 1n]

/**
 * A text that SQLite itself would write for a number is that number, and compared with a TEXT column it is the same text again;
 * anything else (007, 1.10) is a text.
 */
function valuesOf(parameters: SqlParameters): Map<string, string | number | bigint> {
  return new Map(
    parameters.map(([name, text]): [string, string | number | bigint] => {
      const whole = /^(?:0|-?[1-9]\d*)$/.test(text) ? BigInt(text) : null
      if (whole !== null && whole >= LEAST && whole <= MOST) return [name, whole]
      const isPlain = /^-?(?:0|[1-9]\d{0,9})\.\d{0,4}[1-9]$/.test(text)
      return [name, isPlain ? Number(text) : text]
    }),
  )
}
