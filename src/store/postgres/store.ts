import type { Lease, Store } from '../../sync/store.ts'
import type { Job } from '../../sync/types.ts'
import { refusalOf } from '../core/collections.ts'
import { asOwner, namesOf, ownJobOf } from '../core/jobs.ts'
import { heldByOther, leaseOf, noteOwner, prepareJob, releaseJob } from '../core/leases.ts'
import { noteMissing } from '../core/missing.ts'
import { claimAddress, isOfAddress } from '../core/settings.ts'
import { type Keys, type Rule, timeOf } from '../core/sql.ts'
import { createStore, type Machinery } from '../core/store.ts'
import { closeWalk } from '../core/walks.ts'
import { POSTGRES, runnerOn, runRule } from './driver.ts'
import { type Leases, newEpoch } from './leases.ts'
import { placeOf } from './server/pool.ts'
import type { Patience, Server } from './server/server.ts'
import { createServerTables } from './tables/collection.ts'

export interface PostgresStoreOptions extends Pick<Patience, 'now' | 'signal'> {
  server: Server
  leases: Leases
  /** `api.baseUrl`: no job can be acquired while the mirror holds the lists of another address. */
  baseUrl: string
  /** How long rows of `sync_runs` and closed walks are kept, in milliseconds. */
  keepRuns: number
}

/** The store on a PostgreSQL schema, for any number of workers. */
export function openPostgresStore({
  server,
  leases,
  baseUrl,
  keepRuns,
  now,
  signal,
}: PostgresStoreOptions): Store {
  const tables = createServerTables(server)
  const runner = runnerOn(server, { now, signal })
  const { reading, writing } = runner
  const owning = <T>(lease: Lease, begin: (keys: Keys, at: string) => Rule<T>) =>
    tables.retrying(lease.job.collection, ({ shape }) =>
      writing(() => asOwner(POSTGRES, ownJobOf(lease), () => begin(shape, timeOf(now())))),
    )
  const machinery: Machinery = {
    ...runner,
    readingRows: (job, begin) => tables.retrying(job.collection, ({ shape }) => reading(begin(shape))),
    ...tables,
    noteMissing: (lease, judged) =>
      owning(lease, (keys, at) => noteMissing(POSTGRES, keys, { ...judged, at })),
    closeWalk: (lease, closing) => owning(lease, (keys, at) => closeWalk(POSTGRES, keys, { ...closing, at })),
  }

  /** Takes the job whose lock we have. Its former owner can write nothing from then on. */
  function takeOver(job: Job, isVerify: boolean): Promise<Lease & { epoch: number }> {
    return server.transaction(async (sql) => {
      await runRule(sql, prepareJob(job, baseUrl))
      await runRule(sql, noteOwner(namesOf(job), leases.name, isVerify))
      const epoch = await runRule(sql, newEpoch(namesOf(job)))
      const refusal = await runRule(sql, refusalOf(POSTGRES, job.collection))
      return { ...(await runRule(sql, leaseOf(job, refusal))), epoch: epoch ?? 0 }
    })
  }

  return {
    ...createStore(machinery, keepRuns),
    async acquire(job, isVerify = false) {
      const { organization, collection } = namesOf(job)
      if (!(await leases.lock(organization, collection))) return reading(heldByOther(job))
      try {
        return { lease: await takeOver(job, isVerify) }
      } catch (error) {
        await leases.unlock(organization, collection)
        throw error
      }
    },
    async release(lease) {
      const { job, epoch } = ownJobOf(lease)
      try {
        await reading(releaseJob(job, { epoch }))
      } finally {
        // Else no process could read the list as long as this one lives.
        await leases.unlock(job.organization, job.collection)
      }
    },
  }
}

/** Notes the API whose lists the schema holds, as `claimAddress` of the core. */
export async function claimAddressOn(
  server: Server,
  baseUrl: string,
  accept: boolean,
): Promise<string | null> {
  if (await runRule(server, isOfAddress(baseUrl))) return null
  return server.transaction(async (sql) => {
    // One process after another: several at once could each find no address.
    await sql.exec('LOCK TABLE sync_settings IN SHARE ROW EXCLUSIVE MODE')
    return runRule(sql, claimAddress(baseUrl, accept, placeOf(server.address)))
  })
}
