import type { Lease, Store } from '../../sync/store.ts'
import type { Job } from '../../sync/types.ts'
import { asOwner, ownJobOf } from '../core/jobs.ts'
import { acquiring, type Leases } from '../core/leases.ts'
import type { Keys, Rule } from '../core/sql.ts'
import { createStore, type Machinery } from '../core/store.ts'
import { knownKeys } from '../core/tables.ts'
import { closeWalk } from '../core/walks.ts'
import { analyzeTable, tablesToAnalyze } from './analyze.ts'
import { type Connection, runRule, SQLITE } from './driver.ts'
import { translatingErrors } from './file/open.ts'
import { noteMissingInBatches } from './missing.ts'
import { createFileTables, createSchemaCache } from './tables/collection.ts'
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
  const { now, signal } = patience
  // Another process may change the type of a key column.
  const keys = createSchemaCache<Keys | null>(connection)
  const keysOf = ({ collection: { name } }: Job) =>
    keys.get(name, () => runRule(connection, knownKeys(SQLITE, name)))
  const time = () => new Date(now()).toISOString()
  const runner = runnerOn(connection, transact, patience)
  const tables = createFileTables(connection, transact)
  const owning =
    (lease: Lease) =>
    <T>(begin: () => Rule<T>) =>
      runner.writing(() => asOwner(SQLITE, ownJobOf(lease), begin))

  /** After runs that changed much, also the first one of a mirror, renews the statistics by which people's queries are planned. */
  async function analyze(): Promise<void> {
    for (const table of await transact(() => tablesToAnalyze(connection)))
      if (!signal.aborted) await transact(() => analyzeTable(connection, table))
  }

  const machinery: Machinery = {
    ...runner,
    readingRows: async (job, begin) =>
      translatingErrors(connection.name, () => runRule(connection, begin(keysOf(job)))),
    ...tables,
    noteMissing: (lease, judged) =>
      noteMissingInBatches(
        { ...runner, writing: owning(lease) },
        () => keysOf(judged.job),
        () => ({ ...judged, at: time() }),
      ),
    closeWalk: (lease, closing) =>
      owning(lease)(() => closeWalk(SQLITE, keysOf(closing.job), { ...closing, at: time() })),
  }
  const store = createStore(machinery, keepRuns)

  return {
    ...store,
    ...acquiring(runner, leases, baseUrl),
    async prune(job) {
      await store.prune(job)
      await analyze()
    },
  }
}
