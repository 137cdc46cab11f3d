import fs from 'node:fs'
import { MirrorError } from '../errors.ts'
import { fullDisk } from '../report/verdict.ts'
import { assertMayRead, whyUnwritable } from '../store/sqlite/file/errors.ts'
import { inspectHeader } from '../store/sqlite/file/header.ts'
import { openForWriting, translatingErrors } from '../store/sqlite/file/open.ts'
import { freeBytes } from '../store/sqlite/read/overview.ts'
import { openReader, type Reader } from '../store/sqlite/read/reader.ts'
import type { Connection } from '../store/sqlite/sql.ts'
import { createLockWait, createTransact, type Patience, type Transact } from '../store/sqlite/transaction.ts'
import type { Runtime } from './runtime.ts'

/** Whether there is no mirror yet. Call it before this process opens the file. */
export function isNotMadeYet(file: string): boolean {
  const { kind } = translatingErrors(file, () => {
    assertMayRead(file)
    return inspectHeader(file)
  })
  return kind === 'absent' || kind === 'empty'
}

/** For commands that need a mirror and must not make one. */
export function assertMirror(file: string): void {
  if (isNotMadeYet(file)) throw noMirror(file)
}

/** `isCopy`: the user named this file with `--database`. Throws MirrorError where there is nothing to read. */
export function readMirror(file: string, isCopy = false): Reader {
  const reader = openReader(file, isCopy)
  if (reader) return reader
  throw isCopy
    ? new MirrorError(`--database ${file}: there is no mirror, and no copy of one, at this place`)
    : noMirror(file)
}

export function noMirror(file: string): MirrorError {
  return new MirrorError(`there is no mirror at ${file} yet; "admin-mirror sync" makes it`)
}

/** The mirror, open for writing. */
interface WritableMirror {
  connection: Connection
  transact: Transact
  patience: Patience
}

/** Opens the mirror, or makes it. `report` gets what this process waits for, or does, for long. */
export async function openMirror(
  file: string,
  runtime: Runtime,
  report: (message: string) => void,
): Promise<WritableMirror> {
  const { now, sleep, signal } = runtime
  const patience = { now, sleep, signal, report }
  const connection = await createLockWait(file, runtime)(() => openForWriting(file))
  return { connection, patience, transact: createTransact({ connection, file, ...patience }) }
}

/** Why the mirror cannot be written now; null if it can, or is not there yet. `isWriter`: whether this process is one that writes it. */
export function unwritableNow(file: string, isWriter: boolean): string | null {
  const owner = fs.statSync(file, { throwIfNoEntry: false })?.uid
  return fullDisk(file, freeBytes(file)) ?? whyUnwritable(file, isWriter || owner === process.geteuid?.())
}

/**
 * The same for a file that the user named. Who writes it is not known, nor what they may, but on a full disk nobody can. A copy, which is
 * in no WAL mode, is written by nobody.
 */
export function unwritableNamed(file: string): string | null {
  const header = translatingErrors(file, () => {
    assertMayRead(file)
    return inspectHeader(file)
  })
  return header.kind === 'sqlite' && header.isInWal ? fullDisk(file, freeBytes(file)) : null
}
