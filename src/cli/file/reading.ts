import fs from 'node:fs'
import { MirrorError } from '../../errors.ts'
import type { MirrorFacts } from '../../store/core/status.ts'
import type { Connection } from '../../store/sqlite/driver.ts'
import { rightsMissing } from '../../store/sqlite/file/errors.ts'
import { inspectHeader, openForReading } from '../../store/sqlite/file/open.ts'
import { assertReadingSql, createReader, type Parameters } from '../../store/sqlite/read/reader.ts'
import { freeBytes, fullDisk, readFileFacts } from '../../store/sqlite/read/status.ts'
import { type MirrorPlace, noMirror } from '../mirror.ts'
import { assertExport, type QueryWork, type ReadingTask, writeResult } from '../reading.ts'
import type { Runtime } from '../runtime.ts'

// A mirror in a file, as it is read; `open.ts` opens it for writing.

/** `isCopy`: the user named this file with `--database`. Throws MirrorError where there is nothing to read. */
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

export async function readFacts(
  { database, config }: MirrorPlace,
  { isAlive, now }: Runtime,
): Promise<MirrorFacts | null> {
  const connection = config ? openForReading(database) : openMirrorFile(database, true)
  try {
    return connection && readFileFacts(connection, isAlive, now())
  } finally {
    connection?.close()
  }
}

/** Why the mirror cannot be written now; null if it can, or there is none yet. `isWriter`: whether this process writes it. */
export function unwritableNow(file: string, isWriter: boolean): string | null {
  const owner = fs.statSync(file, { throwIfNoEntry: false })?.uid
  return fullDisk(file, freeBytes(file)) ?? rightsMissing(file, isWriter || owner === process.geteuid?.())
}

/** The same of a file that the user named: it is not known who writes it, but on a full disk nobody can. A copy is not in WAL mode, and never written. */
export function unwritableNamed(file: string): string | null {
  const header = inspectHeader(file)
  return header.kind === 'sqlite' && header.isInWal ? fullDisk(file, freeBytes(file)) : null
}

/** Does the task on a mirror in a file. Throws UsageError and MirrorError. */
export async function readFile(runtime: Pick<Runtime, 'stdout'>, task: ReadingTask): Promise<void> {
  const { database, config, work } = task
  const connection = openForReading(database, config === null)
  if (!connection) {
    // Usage is told before it is said that there is no mirror.
    if (work.kind === 'query') assertReadingSql(work.sql, valuesOf(work.parameters))
    else if (config) assertExport(work, config)
    throw missing(database, config === null)
  }
  const reader = createReader(connection, database)
  try {
    const query = (sql: string, parameters: QueryWork['parameters']) => {
      const { rows, ...head } = reader.query(sql, valuesOf(parameters))
      // All rows are one batch, which is read while it is written.
      return { ...head, batches: [rows] }
    }
    await writeResult(runtime, { ask: reader.ask, query }, task)
  } finally {
    connection.close()
  }
}

const [LEAST, MOST] = [-(2n ** 63n), 2n ** 63n - 1n]

function valuesOf(parameters: QueryWork['parameters']): Parameters {
  return new Map(parameters.map(([name, value]) => [name, parameterValue(value)]))
}

/**
 * A text that SQLite itself would write for a number is that number, and compared with a TEXT column it is the same text again;
 * anything else (007, 1.10) is a text.
 */
function parameterValue(text: string): string | number | bigint {
  if (/^(?:0|-?[1-9]\d*)$/.test(text)) {
    const whole = BigInt(text)
    return whole >= LEAST && whole <= MOST ? whole : text
  }
  const isPlain = /^-?(?:0|[1-9]\d{0,9})\.\d{0,4}[1-9]$/.test(text)
  return isPlain ? Number(text) : text
}
