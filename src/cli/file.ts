import fs from 'node:fs'
import path from 'node:path'
import { MirrorError } from '../errors.ts'
import { createBudgets } from '../store/core/budgets.ts'
import { publishFailure } from '../store/core/publication.ts'
import type { MirrorFacts } from '../store/core/status.ts'
import type { Connection } from '../store/sqlite/driver.ts'
import { freeBytes, fullDisk, rightsMissing } from '../store/sqlite/errors.ts'
import { CHOOSE, COPY_ID, inspectHeader, openForReading, openForWriting } from '../store/sqlite/open.ts'
import { askFile, assertReadingSql, queryFile, readFileFacts, typesOf } from '../store/sqlite/read.ts'
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
    place: file,
    budgets: createBudgets(runner),
    // Any read shows whether the mirror can be read; what it returns is not needed.
    probe: async () => void (await runner.reading(publishFailure())),
    writeFault: () => unwritableNow(file, true),
    facts: async () => readFileFacts(connection, runtime.isAlive, runtime.now()),
    close: async () => void connection.close(),
  }
}

/** Opens the file for writing, or makes it. */
export function openConnection(file: string, runtime: Runtime): Promise<Connection> {
  return createLockWait(file, runtime)(() => openForWriting(file))
}

/** Opens it for reading. `isCopy`: the user named this file with `--database`. Throws MirrorError where there is nothing to read. */
export function openMirrorFile(file: string, isCopy: boolean): Connection {
  const connection = openForReading(file, isCopy)
  if (connection) return connection
  throw missing(file, isCopy)
}

function missing(file: string, isCopy: boolean): MirrorError {
  return isCopy
    ? new MirrorError(`--database ${file}: there is no mirror, and no copy of one, at this place`)
    : noMirror(file)
}

/** What `status` reads; null if there is no mirror yet. */
export function factsInFile(
  { database, config }: MirrorPlace,
  { isAlive, now }: Runtime,
): MirrorFacts | null {
  const connection = config ? openForReading(database) : openMirrorFile(database, true)
  try {
    return connection && readFileFacts(connection, isAlive, now())
  } finally {
    connection?.close()
  }
}

/** Why the mirror cannot be written now; null if it can, or there is none yet. `isWriter`: whether this process writes it. */
function unwritableNow(file: string, isWriter: boolean): string | null {
  const user = process.geteuid?.()
  // What is not there yet, this user would make.
  const isOurs = () => (fs.statSync(file, { throwIfNoEntry: false })?.uid ?? user) === user
  return fullDisk(file, freeBytes(file)) ?? rightsMissing(file, isWriter || isOurs())
}

/** The same for `status`. Of a file that the user named, it is not known who writes it, but on a full disk nobody can. A copy, not in WAL mode, is never written. */
export function writeFault({ database, config }: MirrorPlace): string | null {
  const header = inspectHeader(database)
  if (config && header.kind === 'sqlite' && header.applicationId === COPY_ID)
    return `${database} is a published file, made for reading: nothing can be synced into it. ${CHOOSE}`
  if (config) return unwritableNow(database, false)
  return header.kind === 'sqlite' && header.isInWal ? fullDisk(database, freeBytes(database)) : null
}

/** Opens it for reading. An error is for whoever has looked at what was typed; null: there is no mirror. */
function openOrError({ database, config }: MirrorPlace): Connection | MirrorError | null {
  try {
    return openForReading(database, config === null)
  } catch (error) {
    if (error instanceof MirrorError) return error
    throw error
  }
}

/** Reads from the file. Throws UsageError and MirrorError. */
export async function readFile(place: MirrorPlace, read: (reader: Reader) => Promise<void>): Promise<void> {
  const connection = openOrError(place)
  if (connection === null || connection instanceof MirrorError) {
    const fail = () => {
      throw connection ?? missing(place.database, place.config === null)
    }
    const query: Reader['query'] = (sql, parameters) => {
      assertReadingSql(sql, valuesOf(parameters))
      return fail()
    }
    return read({ isThere: connection !== null, ask: fail, query })
  }
  try {
    await read({
      isThere: true,
      ask: (rule) => askFile(connection, rule),
      query: (sql, parameters) => queryFile(connection, sql, valuesOf(parameters)),
      typesOf: (name) => typesOf(connection, name),
    })
  } finally {
    connection.close()
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
