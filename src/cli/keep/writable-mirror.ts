import type { Config } from '../../config/config.ts'
import { InterruptedError } from '../../errors.ts'
import {
  collectionsOf,
  type Forgetting,
  type Holdings,
  holdingsOf,
  knownOrganizations,
} from '../../store/core/forget.ts'
import type { JobNames } from '../../store/core/jobs.ts'
import type { Rule } from '../../store/core/sql.ts'
import { runRule, SQLITE } from '../../store/sqlite/driver.ts'
import { newLockName } from '../../store/sqlite/file/lock-file.ts'
import { openForReading, translatingErrors } from '../../store/sqlite/file/open.ts'
import { createForgetting } from '../../store/sqlite/forget.ts'
import { createLeases } from '../../store/sqlite/leases.ts'
import type { Connection } from '../../store/sqlite/sql.ts'
import { makeConfigured } from '../../store/sqlite/tables/configured.ts'
import { createTypedTableRebuild, type Rebuilt } from '../../store/sqlite/tables/rebuild.ts'
import { createTokens } from '../../store/sqlite/tokens.ts'
import type { Transact } from '../../store/sqlite/transaction.ts'
import { exitCodeOfStop } from '../exit-code.ts'
import { isNotMadeYet, openMirror } from '../mirror-file.ts'
import type { Runtime } from '../runtime.ts'

/** What a mirror of either kind holds, by organizations and their collections. */
export interface Inventory {
  organizations(): Promise<{ id: string; name: string }[]>
  collectionsOf(organizationId: string): Promise<string[]>
  holdingsOf(job: JobNames): Promise<Holdings>
  close(): Promise<void>
}

/** A mirror of either kind, for commands that change it and send nothing. */
export interface WritableMirror extends Inventory {
  /** Lifts the holds of these organizations' tokens; see `Tokens`. */
  resume(organizationIds: readonly string[]): Promise<string[]>
  collections(): Promise<readonly string[]>
  /** Makes the typed table and the views of a collection from its raw rows. Throws InterruptedError after the signal. */
  rebuild(collection: string): Promise<Rebuilt>
  beginForgetting(): Promise<Forgetting>
}

/** Whether there is a mirror. Changes nothing. Throws MirrorError. */
export async function isMade(config: Config, runtime: Runtime): Promise<boolean> {
  if (!config.postgres) return !isNotMadeYet(config.database)
  const { isMadeOnServer } = await import('../postgres/open.ts')
  return isMadeOnServer(config, runtime)
}

/** Opens the mirror for reading; null if there is none yet. Throws MirrorError. */
export async function openInventory(config: Config, runtime: Runtime): Promise<Inventory | null> {
  if (!config.postgres) return inventoryOfFile(config.database)
  const { inventoryOfServer } = await import('../postgres/writable-server.ts')
  return inventoryOfServer(config, runtime)
}

/** Runs a command that changes the mirror. Returns its exit code, or that of the signal that stopped it. */
export async function withMirror(
  config: Config,
  runtime: Runtime,
  work: (mirror: WritableMirror) => Promise<number>,
): Promise<number> {
  const { signal, stderr } = runtime
  const open = config.postgres ? (await import('../postgres/writable-server.ts')).openServer : openFile
  try {
    const mirror = await open(config, runtime, (message) => stderr.write(`${message}\n`))
    try {
      return await work(mirror)
    } finally {
      await mirror.close()
    }
  } catch (error) {
    if (!(error instanceof InterruptedError) || !signal.aborted) throw error
    stderr.write(`${error.message}\n`)
    return exitCodeOfStop(signal)
  }
}

/** Opens the mirror in a file, or makes it. Throws MirrorError. */
async function openFile(
  { database: file, collections }: Config,
  runtime: Runtime,
  report: (message: string) => void,
): Promise<WritableMirror> {
  const { now, pid, newToken } = runtime
  const { connection, patience, transact: transactAlone } = await openMirror(file, runtime, report)
  const own = <T>(task: () => T) => translatingErrors(file, task)
  try {
    const leases = own(() => createLeases({ connection, file, name: newLockName(pid, newToken), now }))
    const transact: Transact = (task, kind) =>
      transactAlone(() => {
        leases.assertAlive()
        return task()
      }, kind)
    const rebuilding = createTypedTableRebuild({ ...patience, connection, file, transact })
    const inventory = inventoryOf(connection, file)
    await transact(() => makeConfigured(connection, collections)).catch((error: unknown) => {
      leases.close()
      throw error
    })
    return {
      ...inventory,
      resume: async (ids) => own(() => createTokens(connection, transact, newToken)).resume(ids),
      collections: async () => own(rebuilding.collections),
      rebuild: rebuilding.collection,
      beginForgetting: async () =>
        own(() => createForgetting({ ...patience, connection, leases, transact, configured: collections })),
      async close() {
        leases.close()
        connection.close()
      },
    }
  } catch (error) {
    connection.close()
    throw error
  }
}

/** Opens the mirror in a file for reading; null if there is none yet. Throws MirrorError. */
function inventoryOfFile(file: string): Inventory | null {
  const connection = openForReading(file)
  return connection && inventoryOf(connection, file)
}

function inventoryOf(connection: Connection, file: string): Inventory {
  const reading = async <T>(rule: Rule<T>) => translatingErrors(file, () => runRule(connection, rule))
  return {
    organizations: () => reading(knownOrganizations()),
    collectionsOf: (organizationId) => reading(collectionsOf(organizationId)),
    holdingsOf: (job) => reading(holdingsOf(SQLITE, job)),
    close: async () => {
      connection.close()
    },
  }
}
