import fs from 'node:fs'
import type { Config } from '../../config/config.ts'
import { MirrorError } from '../../errors.ts'
import type { Connection } from '../../store/sqlite/driver.ts'
import { rightsMissing, translatingErrors } from '../../store/sqlite/file/errors.ts'
import { assertMayRead, type Header, inspectHeader, openForReading } from '../../store/sqlite/file/open.ts'
import { freeBytes, fullDisk, readFileFacts } from '../../store/sqlite/read/status.ts'
import type { MirrorPlace, OpenMirror, OpenOptions } from '../mirror.ts'
import type { MirrorFacts } from '../read-status.ts'
import type { ReadingTask } from '../reading.ts'
import type { Runtime } from '../runtime.ts'

// A mirror in a file, as `MirrorKind` describes it. What only some commands need is loaded when they need it.

export async function isMade({ database }: Config): Promise<boolean> {
  return !isNotMadeYet(database)
}

export async function open(options: OpenOptions): Promise<OpenMirror> {
  const { openFile } = await import('./open.ts')
  return openFile(options)
}

export async function readFacts(
  { database, config }: MirrorPlace,
  { isAlive, now }: Runtime,
): Promise<MirrorFacts | null> {
  const connection = config ? openForReading(database) : openMirror(database, true)
  if (!connection) return null
  try {
    return readFileFacts(connection, isAlive, now())
  } finally {
    connection.close()
  }
}

export function writeFault({ database, config }: MirrorPlace): string | null {
  return config ? unwritableNow(database, false) : unwritableNamed(database)
}

/** Why the mirror cannot be written now; null if it can, or there is none yet. `isWriter`: whether this process writes it. */
export function unwritableNow(file: string, isWriter: boolean): string | null {
  const owner = fs.statSync(file, { throwIfNoEntry: false })?.uid
  return fullDisk(file, freeBytes(file)) ?? rightsMissing(file, isWriter || owner === process.geteuid?.())
}

/**
 * The same for a file that the user named. It is not known who writes it, nor with what rights, but on a full disk nobody can. A copy, which is
 * not in WAL mode, is never written.
 */
function unwritableNamed(file: string): string | null {
  const header = headerOf(file)
  if (header.kind !== 'sqlite' || !header.isInWal) return null
  return fullDisk(file, freeBytes(file))
}

export async function read(runtime: Runtime, task: ReadingTask): Promise<void> {
  const { readFile } = await import('./reading.ts')
  await readFile(runtime, task)
}

/** Whether there is no mirror yet. Call it before this process opens the file. */
export function isNotMadeYet(file: string): boolean {
  const { kind } = headerOf(file)
  return kind === 'absent' || kind === 'empty'
}

function headerOf(file: string): Header {
  return translatingErrors(file, () => {
    assertMayRead(file)
    return inspectHeader(file)
  })
}

/** For commands that need a mirror and must not make one. */
export function assertMirror(file: string): void {
  if (isNotMadeYet(file)) throw noMirror(file)
}

/** `isCopy`: the user named this file with `--database`. Throws MirrorError where there is nothing to read. */
export function openMirror(file: string, isCopy: boolean): Connection {
  const connection = openForReading(file, isCopy)
  if (connection) return connection
  throw isCopy
    ? new MirrorError(`--database ${file}: there is no mirror, and no copy of one, at this place`)
    : noMirror(file)
}

export function noMirror(file: string): MirrorError {
  return new MirrorError(`there is no mirror at ${file} yet; "admin-mirror sync" makes it`)
}
