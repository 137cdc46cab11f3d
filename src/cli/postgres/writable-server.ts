import type { Config } from '../../config/config.ts'
import { collectionsOf, holdingsOf, knownOrganizations } from '../../store/core/forget.ts'
import { collectionNames } from '../../store/core/tables.ts'
import { POSTGRES, runRule } from '../../store/postgres/driver.ts'
import { createForgetting } from '../../store/postgres/forget.ts'
import { createLeases, type Leases } from '../../store/postgres/leases.ts'
import type { Server } from '../../store/postgres/server/server.ts'
import { rebuildCollection } from '../../store/postgres/tables/rebuild.ts'
import { createTokens } from '../../store/postgres/tokens.ts'
import type { Inventory, WritableMirror } from '../keep/writable-mirror.ts'
import type { Runtime } from '../runtime.ts'
import { openPostgres, openPostgresForReading, workerName } from './open.ts'

/** Opens the mirror on a PostgreSQL server, or makes it. Throws MirrorError. */
export async function openServer(
  config: Config,
  runtime: Runtime,
  report: (message: string) => void,
): Promise<WritableMirror> {
  const { newToken, signal } = runtime
  const { server, clock, close } = await openPostgres(config, runtime, report)
  const { now } = clock
  let leases: Leases | null = null
  return {
    ...inventoryOf(server),
    resume: async (ids) => (await createTokens(server, clock, newToken)).resume(ids),
    collections: () => runRule(server, collectionNames()),
    rebuild: (name) => rebuildCollection(server, name, { now, signal }),
    async beginForgetting() {
      leases ??= await createLeases(server, workerName(runtime))
      return createForgetting(server, leases, { configured: config.collections, now, signal })
    },
    async close() {
      await leases?.close()
      await close()
    },
  }
}

/** Opens the mirror on a PostgreSQL server for reading; null if there is none yet. Throws MirrorError. */
export async function inventoryOfServer(config: Config, runtime: Runtime): Promise<Inventory | null> {
  const server = await openPostgresForReading(config, runtime)
  return server && inventoryOf(server)
}

function inventoryOf(server: Server): Inventory {
  return {
    organizations: () => runRule(server, knownOrganizations()),
    collectionsOf: (organizationId) => runRule(server, collectionsOf(organizationId)),
    holdingsOf: (job) => runRule(server, holdingsOf(POSTGRES, job)),
    close: () => server.close(),
  }
}
