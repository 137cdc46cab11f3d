import { dropCollection } from '../core/collections.ts'
import { createForgetting, type Forgetting, isUnused } from '../core/forget.ts'
import { quoted } from '../core/sql.ts'
import { type ConfiguredCollection, knownKey } from '../core/tables.ts'
import { POSTGRES, runnerOn, runRule } from './driver.ts'
import type { Leases } from './leases.ts'
import type { Patience, Server } from './server/server.ts'
import { tried } from './tables/alter.ts'
import { makeConfigured } from './tables/collection.ts'

export interface ForgettingOptions extends Pick<Patience, 'now' | 'signal'> {
  /** Their tables are made again, empty. */
  configured: readonly ConfiguredCollection[]
}

/** Rows of one transaction. */
const FORGOTTEN_AT_ONCE = 5000

export function createServerForgetting(
  server: Server,
  leases: Leases,
  { configured, ...options }: ForgettingOptions,
): Forgetting {
  return createForgetting({
    ...runnerOn(server, options),
    batchRows: FORGOTTEN_AT_ONCE,
    async take(job) {
      const taken = await leases.take(job, false)
      return taken ? { job, name: `${job.organization} ${job.collection}`, ...taken } : 'a worker'
    },
    release: leases.release,
    async dropUnused(collection) {
      const isDropped = await dropUnused(server, collection)
      await makeConfigured(server, configured)
      return isDropped
    },
  })
}

function dropUnused(server: Server, collection: string): Promise<boolean> {
  return server.transaction(async (sql) => {
    if ((await runRule(sql, knownKey(collection))) === null) return false
    await sql.exec(`LOCK TABLE ${quoted(collection)} IN ACCESS EXCLUSIVE MODE`)
    if (!(await runRule(sql, isUnused(collection)))) return false
    // Empty tables that a user's view or policy reads stay: they hold nobody's data.
    const inTheWay = await runRule(
      sql,
      tried(() => dropCollection(POSTGRES, collection)),
    )
    return inTheWay === null
  })
}
