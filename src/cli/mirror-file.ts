import type { Config } from '../config/config.ts'
import { InterruptedError, MirrorError } from '../errors.ts'
import { assertMayRead } from '../store/sqlite/file/errors.ts'
import { inspectHeader } from '../store/sqlite/file/header.ts'
import { newLockName } from '../store/sqlite/file/lock-file.ts'
import { openForWriting, translatingErrors } from '../store/sqlite/file/open.ts'
import { createLeases, type Leases } from '../store/sqlite/leases.ts'
import { openReader, type Reader } from '../store/sqlite/read/reader.ts'
import type { Connection } from '../store/sqlite/sql.ts'
import { makeConfigured } from '../store/sqlite/tables/configured.ts'
import { createLockWait, createTransact, type Patience, type Transact } from '../store/sqlite/transaction.ts'
import { exitCodeOfStop } from './exit-code.ts'
import type { Runtime } from './runtime.ts'

/** Whether there is no mirror yet. Call it before this process opens the file. */
export function isNotMadeYet(file: string): boolean {
  assertMayRead(file)
  const { kind } = translatingErrors(file, () => inspectHeader(file))
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
export interface WritableMirror {
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

/** Runs a command that changes the mirror and sends nothing. Returns its exit code, or that of the signal that stopped it. */
export async function withMirror(
  { database: file, collections }: Pick<Config, 'database' | 'collections'>,
  runtime: Runtime,
  work: (mirror: WritableMirror & { leases: Leases }) => Promise<number>,
): Promise<number> {
  const { now, pid, newToken, signal, stderr } = runtime
  const mirror = await openMirror(file, runtime, (message) => stderr.write(`${message}\n`))
  const { connection } = mirror
  try {
    const leases = translatingErrors(file, () =>
      createLeases({ connection, file, name: newLockName(pid, newToken), now }),
    )
    const transact: Transact = (task, kind) =>
      mirror.transact(() => {
        leases.assertAlive()
        return task()
      }, kind)
    try {
      await transact(() => makeConfigured(connection, collections))
      return await work({ ...mirror, transact, leases })
    } finally {
      leases.close()
    }
  } catch (error) {
    if (!(error instanceof InterruptedError) || !signal.aborted) throw error
    stderr.write(`${error.message}\n`)
    return exitCodeOfStop(signal)
  } finally {
    connection.close()
  }
}
