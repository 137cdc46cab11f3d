import type { Lease, Store } from '../../sync/store.ts'
import { asOwner, ownJobOf } from '../core/jobs.ts'
import { acquiring, type Leases } from '../core/leases.ts'
import { noteMissing } from '../core/missing.ts'
import { claimAddress, isOfAddress } from '../core/settings.ts'
import { type Keys, type Rule, timeOf } from '../core/sql.ts'
import { createStore, type Machinery } from '../core/store.ts'
import { closeWalk } from '../core/walks.ts'
import { POSTGRES, runnerOn, runRule } from './driver.ts'
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

  return {
    ...createStore(machinery, keepRuns),
    ...acquiring(runner, leases, baseUrl),
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
