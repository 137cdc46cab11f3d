import type { Config } from '../../config/config.ts'
import { InterruptedError } from '../../errors.ts'
import { collectionsOf, forgetOrganization, holdingsOf, knownOrganizations } from '../../store/core/forget.ts'
import { POSTGRES, runRule } from '../../store/postgres/driver.ts'
import { createLeases, type Leases } from '../../store/postgres/leases.ts'
import type { Server } from '../../store/postgres/server/server.ts'
import { makeConfigured } from '../../store/postgres/tables/configured.ts'
import { collectionNames, rebuildCollection } from '../../store/postgres/tables/rebuild.ts'
import { createTokens } from '../../store/postgres/tokens.ts'
import { dropUnused, forgetJob } from '../../store/postgres/walks/forget.ts'
import type { Forgetting } from '../../store/sqlite/walks/forget.ts'
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
    collections: () => collectionNames(server),
    rebuild: (name) => rebuildCollection(server, name, { now, signal }),
    async beginForgetting() {
      leases ??= await createLeases(server, workerName(runtime))
      return createForgetting(server, leases, { config, now, signal })
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

interface ForgettingOptions {
  config: Pick<Config, 'collections'>
  now: () => number
  signal: AbortSignal
}

function createForgetting(
  server: Server,
  leases: Leases,
  { config, now, signal }: ForgettingOptions,
): Forgetting {
  return {
    // The server overwrites what is deleted when it cleans its tables (VACUUM).
    blank: async () => {},
    async job(job, isConfigured) {
      const { organization, collection } = job
      if (!(await leases.lock(organization, collection))) return { owner: 'a worker' }
      try {
        const gone = await runRule(server, holdingsOf(POSTGRES, job))
        const at = new Date(now()).toISOString()
        if (!(await forgetJob(server, job, { isConfigured, signal, at })))
          throw new InterruptedError('stopped before everything was forgotten; the same command continues')
        const isCollectionGone = await dropUnused(server, collection)
        await makeConfigured(server, config.collections)
        return { owner: null, gone, isCollectionGone }
      } finally {
        await leases.unlock(organization, collection)
      }
    },
    organization: (id) => server.transaction((sql) => runRule(sql, forgetOrganization(id))),
  }
}
