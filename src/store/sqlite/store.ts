import type { Store } from '../../sync/store.ts'
import { acquiring } from '../core/acquire.ts'
import type { Leases } from '../core/leases.ts'
import { createStore } from '../core/store.ts'
import { analyzeTable, tablesToAnalyze } from './analyze.ts'
import type { Connection } from './driver.ts'
import { type Patience, runnerOn, type Transact } from './transaction.ts'

export interface SqliteStoreOptions extends Patience {
  connection: Connection
  transact: Transact
  /** `api.baseUrl`: no job can be acquired while the mirror holds the lists of another address. */
  baseUrl: string
  leases: Leases
  /** How long rows of `sync_runs` and closed walks are kept, in milliseconds. */
  keepRuns: number
}

/** The store on one SQLite file. */
export function openSqliteStore({
  connection,
  transact,
  baseUrl,
  leases,
  keepRuns,
  ...patience
}: SqliteStoreOptions): Store {
  const runner = runnerOn(connection, transact, patience)
  const store = createStore({
    runner,
    keepRuns,
    isOfOtherTables: () => false,
  })

  /** After runs that changed much, also the first one of a mirror, renews the statistics by which people's queries are planned. */
  async function analyze(): Promise<void> {
    for (const table of await transact(() => tablesToAnalyze(connection)))
      if (!patience.signal.aborted) await transact(() => analyzeTable(connection, table))
  }

  return {
    ...store,
    ...acquiring(runner, leases, baseUrl),
    async prune(job) {
      await store.prune(job)
      await analyze()
    },
  }
}
