import path from 'node:path'
import manifest from '../../../package.json' with { type: 'json' }
import { claimAddress, saveSetting } from '../../store/core/settings.ts'
import type { Rule } from '../../store/core/sql.ts'
import { storedGates } from '../../store/core/status.ts'
import { type Connection, runRule, SQLITE } from '../../store/sqlite/driver.ts'
import { newLockName } from '../../store/sqlite/file/lock-file.ts'
import { translatingErrors } from '../../store/sqlite/file/open.ts'
import { openForWriting } from '../../store/sqlite/file/open-for-writing.ts'
import {
  announceDaemon,
  createLeases,
  type Leases,
  readDaemons,
  withdrawDaemon,
} from '../../store/sqlite/leases.ts'
import { openSqliteStore } from '../../store/sqlite/store.ts'
import { makeConfigured } from '../../store/sqlite/tables/collection.ts'
import { createTokens } from '../../store/sqlite/tokens.ts'
import {
  createFileCheck,
  createLockWait,
  createTransact,
  type Patience,
} from '../../store/sqlite/transaction.ts'
import type { OpenMirror, OpenOptions, RuleRunner, ServedMirror } from '../mirror.ts'
import type { Runtime } from '../runtime.ts'
import { factsOf, unwritableNow } from './mirror.ts'

/** Opens the mirror in a file, or makes it. Throws MirrorError, and UsageError if it holds the lists of another address. */
export async function openFile({ config, runtime, log, address }: OpenOptions): Promise<OpenMirror> {
  const { database: file, collections, keepRuns, api } = config
  const { now, randomHex, env } = runtime
  // SQLite writes what outgrows its cache to a file. A container with a read-only root may have no other writable folder.
  env.SQLITE_TMPDIR ??= path.dirname(file)
  const { connection, patience } = await openConnection(file, runtime)
  const translated = <T>(task: () => T) => translatingErrors(file, task)
  let leases: Leases | undefined
  try {
    // A refused token is noted even if this process's lock file is gone.
    const transactAnyway = translated(() => createTransact({ connection, ...patience }))
    const warning = await transactAnyway(() => {
      const adopted = address && runRule(connection, claimAddress(api.baseUrl, address === 'accept', file))
      runRule(connection, saveSetting('program', manifest.version))
      makeConfigured(connection, collections)
      return adopted
    })
    if (warning) log.warn({ event: 'address_accepted' }, warning)
    const name = newLockName(runtime.pid, randomHex)
    leases = translated(() => createLeases(connection, name, now))
    const writing = { connection, leases, ...patience }
    const transact = translated(() => createTransact(writing))
    return {
      ...ruleRunner(connection, file),
      store: translated(() => openSqliteStore({ ...writing, transact, baseUrl: api.baseUrl, keepRuns })),
      tokens: translated(() => createTokens(connection, transactAnyway, randomHex)),
      processName: name,
      now,
      serve: async () => createServedFile(connection, file, name),
      async announceDaemon() {
        const others = await transact(() => {
          const before = readDaemons(connection, file, name).filter(({ running }) => running === true)
          announceDaemon(connection, name, new Date(now()).toISOString(), config.fingerprint)
          return before
        })
        for (const { pid: owner, since } of others)
          log.warn({ event: 'daemon_beside', owner, since }, DAEMON_BESIDE)
        return () => transact(() => withdrawDaemon(connection, name))
      },
      async beginForgetting() {
        const { createFileForgetting } = await import('../../store/sqlite/forget.ts')
        return translated(() => createFileForgetting({ ...writing, transact }))
      },
      async close() {
        writing.leases.close()
        connection.close()
      },
    }
  } catch (error) {
    leases?.close()
    connection.close()
    throw error
  }
}

function ruleRunner(connection: Connection, file: string): RuleRunner {
  return {
    run: async <T>(rule: (dialect: typeof SQLITE) => Rule<T>) =>
      translatingErrors(file, () => runRule(connection, rule(SQLITE))),
    close: async () => {
      connection.close()
    },
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

const DAEMON_BESIDE =
  'another start is at work on this mirror: what one of them has read, the other reads again, so the API is asked twice; end ' +
  'one of them, unless it is stopping already'

/** What the listener reads from: the connection of the sync, between two of its transactions. */
function createServedFile(connection: Connection, file: string, processName: string): ServedMirror {
  const assertSameFile = createFileCheck(file)
  return {
    async probe() {
      assertSameFile()
      // Any read shows whether the mirror can be read; what it returns is not needed.
      translatingErrors(file, () => runRule(connection, storedGates()))
    },
    writeFault: () => unwritableNow(file, true),
    facts: async () => translatingErrors(file, () => factsOf(connection, file, processName)),
  }
}
