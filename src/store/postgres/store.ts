import type { Store } from '../../sync/store.ts'
import { acquiring } from '../core/acquire.ts'
import type { Leases } from '../core/leases.ts'
import { claimAddress, isOfAddress } from '../core/settings.ts'
import { createStore } from '../core/store.ts'
import { runnerOn, runRule } from './driver.ts'
import { OtherTablesError } from './server/errors.ts'
import { placeOf } from './server/pool.ts'
import type { Patience, Server } from './server/server.ts'

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
  const runner = runnerOn(server, { now, signal })
  return {
    ...createStore({
      runner,
      keepRuns,
      isOfOtherTables: (error) => error instanceof OtherTablesError,
    }),
    ...acquiring(runner, leases, baseUrl),
  }
}

/** Notes the API whose lists the schema holds, as `claimAddress` of the core. */
export async function claimAddressOn(server: Server, baseUrl: string, accept: boolean): Promise<void> {
  if (await runRule(server, isOfAddress(baseUrl))) return
  await server.transaction(async (sql) => {
    // One process after another: several at once could each find no address.
    await sql.exec('LOCK TABLE sync_settings IN SHARE ROW EXCLUSIVE MODE')
    await runRule(sql, claimAddress(baseUrl, accept, placeOf(server.address)))
  })
}
