import type { Config } from '../../config/config.ts'
import { newLockName } from '../../store/sqlite/file/lock-file.ts'
import { openForReading, translatingErrors } from '../../store/sqlite/file/open.ts'
import { createLeases } from '../../store/sqlite/leases.ts'
import type { Connection } from '../../store/sqlite/sql.ts'
import { makeConfigured } from '../../store/sqlite/tables/configured.ts'
import { createTypedTableRebuild } from '../../store/sqlite/tables/rebuild.ts'
import { createTokens } from '../../store/sqlite/tokens.ts'
import type { Transact } from '../../store/sqlite/transaction.ts'
import { createForgetting } from '../../store/sqlite/walks/forget.ts'
import { collectionsOf, holdingsOf, knownOrganizations } from '../../store/sqlite/walks/holdings.ts'
import { openMirror } from '../mirror-file.ts'
import type { Runtime } from '../runtime.ts'
import type { Inventory, WritableMirror } from './writable-mirror.ts'

/** Opens the mirror in a file, or makes it. Throws MirrorError. */
export async function openFile(
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
export function inventoryOfFile(file: string): Inventory | null {
  const connection = openForReading(file)
  return connection && inventoryOf(connection, file)
}

function inventoryOf(connection: Connection, file: string): Inventory {
  const own = <T>(task: () => T) => translatingErrors(file, task)
  return {
    organizations: async () => own(() => knownOrganizations(connection)),
    collectionsOf: async (organizationId) => own(() => collectionsOf(connection, organizationId)),
    holdingsOf: async (job) => own(() => holdingsOf(connection, job)),
    close: async () => {
      connection.close()
    },
  }
}
