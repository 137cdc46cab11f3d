import type { Store } from '../../sync/store.ts'
import { acquiring } from '../core/acquire.ts'
import type { Leases } from '../core/leases.ts'
import { claimAddress, isOfAddress } from '../core/settings.ts'
import { exec } from '../core/sql.ts'
import { createStore } from '../core/store.ts'
import { placeOf } from './connection.ts'
import { OtherTablesError } from './errors.ts'
import { runnerOn, type Server } from './server.ts'

export interface PostgresStoreOptions {
  server: Server
  leases: Leases
  /** `api.baseUrl`: no job can be acquired while the mirror holds the lists of another address. */
  baseUrl: string
  /** How long rows of `sync_runs` and closed walks are kept, in milliseconds. */
  keepRuns: number
  now: () => number
  signal: AbortSignal
}

/** The store on a PostgreSQL schema, for any number of workers. */
export function openPostgresStore({
  server,
  leases,
  baseUrl,
  keepRuns,
  ...when
}: PostgresStoreOptions): Store {
  const runner = runnerOn(server, when)
  return {
    ...createStore({ runner, keepRuns, isOfOtherTables: (error) => error instanceof OtherTablesError }),
    ...acquiring(runner, leases, baseUrl),
  }
}

/** Notes the API whose lists the schema holds, as `claimAddress` of the core. */
export async function claimAddressOn(server: Server, baseUrl: string, accept: boolean): Promise<void> {
  if (await server.read(isOfAddress(baseUrl))) return
  await server.write(function* () {
    // One process after another: several at once could each find no address.
    yield* exec(['LOCK TABLE sync_settings IN SHARE ROW EXCLUSIVE MODE'])
    yield* claimAddress(baseUrl, accept, placeOf(server.address))
  })
}
