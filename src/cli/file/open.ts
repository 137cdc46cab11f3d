import path from 'node:path'
import manifest from '../../../package.json' with { type: 'json' }
import { createForgetting } from '../../store/core/forget.ts'
import { createLeases } from '../../store/core/leases.ts'
import { claimAddress, saveSetting } from '../../store/core/settings.ts'
import { storedGates } from '../../store/core/status.ts'
import { makeConfigured } from '../../store/core/tables.ts'
import { type Connection, runRule, SQLITE } from '../../store/sqlite/driver.ts'
import { translatingErrors } from '../../store/sqlite/file/errors.ts'
import { openForWriting } from '../../store/sqlite/file/open.ts'
import { readFileFacts } from '../../store/sqlite/read/status.ts'
import { openSqliteStore } from '../../store/sqlite/store.ts'
import { createTokens } from '../../store/sqlite/tokens.ts'
import {
  createFileCheck,
  createLockWait,
  createTransact,
  type Patience,
  runnerOn,
} from '../../store/sqlite/transaction.ts'
import type { OpenMirror, OpenOptions } from '../mirror.ts'
import type { Runtime } from '../runtime.ts'
import { unwritableNow } from './reading.ts'

/** Rows of one transaction: some tens of milliseconds. */
const FORGOTTEN_AT_ONCE = 500

/** Opens the mirror in a file, or makes it. Throws MirrorError, and UsageError if it holds the lists of another address. */
export async function openFile({ config, runtime, address }: OpenOptions): Promise<OpenMirror> {
  const { database: file, collections, keepRuns, api } = config
  const { now, randomHex, env, signal } = runtime
  // SQLite writes what outgrows its cache to a file. A container with a read-only root may have no other writable folder.
  env.SQLITE_TMPDIR ??= path.dirname(file)
  const { connection, patience } = await openConnection(file, runtime)
  const translated = <T>(task: () => T) => translatingErrors(file, task)
  try {
    const transact = translated(() => createTransact({ connection, ...patience }))
    await transact(function* () {
      if (address) yield* claimAddress(api.baseUrl, address === 'accept', file)
      yield* saveSetting('program', manifest.version)
      yield* makeConfigured(SQLITE, collections)
    })
    const runner = runnerOn(connection, transact, patience)
    const wait = createLockWait(file, patience)
    const leases = createLeases({
      ...runtime,
      runner,
      name: runtime.processName,
      sleep: (ms) => runtime.sleep(ms, signal),
    })
    const storing = { connection, leases, transact, baseUrl: api.baseUrl, keepRuns, ...patience }
    const assertSameFile = createFileCheck(file)
    return {
      run: async (rule) => translated(() => runRule(connection, rule(SQLITE))),
      store: translated(() => openSqliteStore(storing)),
      tokens: translated(() => createTokens({ connection, transact, wait, newSalt: randomHex })),
      leases,
      forgetting: createForgetting({ ...runner, leases, batchRows: FORGOTTEN_AT_ONCE }),
      now,
      async probe() {
        assertSameFile()
        // Any read shows whether the mirror can be read; what it returns is not needed.
        translated(() => runRule(connection, storedGates()))
      },
      writeFault: () => unwritableNow(file, true),
      facts: async () => readFileFacts(connection, runtime.isAlive, now()),
      async close() {
        await leases.close()
        connection.close()
      },
    }
  } catch (error) {
    connection.close()
    throw error
  }
}

/** Opens the file for writing, or makes it. */
export async function openConnection(
  file: string,
  runtime: Runtime,
): Promise<{ connection: Connection; patience: Patience }> {
  const { now, sleep, signal } = runtime
  const patience = { now, sleep, signal }
  const connection = await createLockWait(file, patience)(() => openForWriting(file))
  return { connection, patience }
}
