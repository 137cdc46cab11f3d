import type { Store } from '../../sync/store.ts'
import type { Job } from '../../sync/types.ts'
import { refusalOf } from '../core/collections.ts'
import { namesOf } from '../core/jobs.ts'
import { heldByOther, leaseOf, prepareJob } from '../core/leases.ts'
import type { Keys } from '../core/sql.ts'
import { createStore, type Machinery } from '../core/store.ts'
import { knownKeys } from '../core/tables.ts'
import { closeWalk } from '../core/walks.ts'
import { analyzeTable, tablesToAnalyze } from './analyze.ts'
import { type Connection, runRule, SQLITE } from './driver.ts'
import { translatingErrors } from './file/open.ts'
import type { Leases } from './leases.ts'
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
    noteMissing: (_lease, judged) =>
      noteMissingInBatches(
        runner,
        () => keysOf(judged.job),
        () => ({ ...judged, at: time() }),
      ),
    closeWalk: (_lease, closing) =>
      transact(() => runRule(connection, closeWalk(SQLITE, keysOf(closing.job), { ...closing, at: time() }))),
  }
  const store = createStore(machinery, keepRuns)

  return {
    ...store,
    acquire: (job, isVerify) =>
      transact(() => {
        runRule(connection, prepareJob(job, baseUrl))
        if (leases.take(namesOf(job), isVerify) !== null) return runRule(connection, heldByOther(job))
        const refusal = runRule(connection, refusalOf(SQLITE, job.collection))
        return { lease: runRule(connection, leaseOf(job, refusal)) }
      }),
    release: ({ job }) => transact(() => leases.release(namesOf(job))),
    async prune(job) {
      await store.prune(job)
      await analyze()
    },
  }
}
