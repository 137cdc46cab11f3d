import { dropCollection } from '../core/collections.ts'
import { createForgetting, type Forgetting, type ForgettingWork, isUnused } from '../core/forget.ts'
import type { JobNames, OwnJob } from '../core/jobs.ts'
import { noteOwner, releaseJob } from '../core/leases.ts'
import { quoted } from '../core/sql.ts'
import { type ConfiguredCollection, knownKey } from '../core/tables.ts'
import { POSTGRES, runnerOn, runRule } from './driver.ts'
import { type Leases, newEpoch } from './leases.ts'
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
  options: ForgettingOptions,
): Forgetting {
  return createForgetting({
    ...forgettingOn(server, options),
    async take(job) {
      const { organization, collection } = job
      if (!(await leases.lock(organization, collection))) return 'a worker'
      return takeOver(server, leases.name, job)
    },
    async release({ job, epoch }) {
      try {
        await runRule(server, releaseJob(job, { epoch }))
      } finally {
        await leases.unlock(job.organization, job.collection)
      }
    },
  })
}

/** Takes a job whose lock this process has. */
export async function takeOver(server: Server, owner: string, job: JobNames): Promise<OwnJob> {
  const epoch = await server.transaction(async (sql) => {
    await runRule(sql, noteOwner(job, owner, false))
    return runRule(sql, newEpoch(job))
  })
  return { job, name: `${job.organization} ${job.collection}`, epoch: epoch ?? 0 }
}

/** What forgets a job that was taken over. */
export function forgettingOn(
  server: Server,
  { configured, ...options }: ForgettingOptions,
): Omit<ForgettingWork, 'take' | 'release'> {
  return {
    ...runnerOn(server, options),
    batchRows: FORGOTTEN_AT_ONCE,
    async dropUnused(collection) {
      const isDropped = await dropUnused(server, collection)
      await makeConfigured(server, configured)
      return isDropped
    },
  }
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
