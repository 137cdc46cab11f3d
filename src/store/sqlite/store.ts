import type { Store } from '../../sync/store.ts'
import { refusalOf } from '../core/collections.ts'
import { namesOf } from '../core/jobs.ts'
import { heldByOther, leaseOf, prepareJob } from '../core/leases.ts'
import type { Keys } from '../core/sql.ts'
import { createStore, type Machinery, type TaskSize } from '../core/store.ts'
import { knownKeys } from '../core/tables.ts'
import { analyzeTable, tablesToAnalyze } from './analyze.ts'
import { type Connection, runRule, SQLITE } from './driver.ts'
import { translatingErrors } from './file/open.ts'
import type { Leases } from './leases.ts'
import { createMaintenance, TASKS, type TaskArgument, type TaskName, type TaskResult } from './maintenance.ts'
import { createFileTables, createSchemaCache, INLINE_ROWS } from './tables/collection.ts'
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
  const maintain = createMaintenance(connection.name, patience)
  const time = () => new Date(now()).toISOString()
  const runner = runnerOn(connection, transact, patience)
  const { reading } = runner
  const tables = createFileTables(connection, transact, maintain)

  /**
   * Runs a task: here, or in another process if its many rows would block the event loop for long. Its `at` is a time
   * within its transaction: who follows `orders_changes` by time would miss an event with an earlier one.
   */
  async function runTask<N extends TaskName>(
    name: N,
    argument: Omit<TaskArgument<N>, 'at'>,
    { what, rows }: TaskSize,
  ): Promise<TaskResult<N>> {
    const begun = { ...argument, at: time() } as TaskArgument<N>
    if (rows > INLINE_ROWS) return maintain(name, begun, { what, rows })
    // The type of `TASKS` cannot express that each task takes its own argument.
    const task = TASKS[name] as (connection: Connection, argument: TaskArgument<N>) => TaskResult<N>
    return transact(() => task(connection, { ...begun, at: time() }))
  }

  /** After runs that changed much, also the first one of a mirror, renews the statistics by which people's queries are planned. */
  async function analyze(): Promise<void> {
    for (const table of await transact(() => tablesToAnalyze(connection)))
      if (!signal.aborted) await transact(() => analyzeTable(connection, table))
  }

  const machinery: Machinery = {
    ...runner,
    readingRows: async (job, begin) =>
      translatingErrors(connection.name, () => {
        const { name } = job.collection
        return runRule(connection, begin(keys.get(name, () => runRule(connection, knownKeys(SQLITE, name)))))
      }),
    ...tables,
    noteMissing: async (_lease, judged, size) => runTask('noteMissing', judged, await reading(size())),
    closeWalk: async (_lease, closing, size) => runTask('closeWalk', closing, await reading(size())),
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
