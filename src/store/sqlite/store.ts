import { JobError } from '../../errors.ts'
import type { Lease, Store } from '../../sync/store.ts'
import type { Job, Notice } from '../../sync/types.ts'
import { counted } from '../../text.ts'
import { keyPathsOf } from '../columns/catalog.ts'
import { entryOf, type LedgerRow, selectAnswers } from '../ledger.ts'
import { pruneTimes } from '../prune.ts'
import { assertAddress } from './address.ts'
import { translatingErrors } from './file/open.ts'
import type { Leases } from './leases.ts'
import { createMaintenance, TASKS, type TaskArgument, type TaskName, type TaskResult } from './maintenance.ts'
import type { Connection } from './sql.ts'
import { changeColumnsAndWrite, INLINE_ROWS, type Outcome } from './tables/alter.ts'
import { type CollectionTables, openCollection } from './tables/collection.ts'
import { assertPossible } from './tables/configured.ts'
import { createLookup, createSchemaCache } from './tables/lookup.ts'
import { rowsIn, tablesToAnalyze } from './tables/statistics.ts'
import { createTransact, inBatches, type Patience, type Transact } from './transaction.ts'
import { isUncounted } from './walks/column-counts.ts'
import { createCommit } from './walks/commit.ts'
import { createJobStore, nameOf as namesOf } from './walks/jobs.ts'
import { countMissing, hasMissing, isOverlapped, isRefreshed } from './walks/missing.ts'
import { createOwnerReader } from './walks/owner.ts'
import { createPruning } from './walks/prune.ts'
import { createRefreshStore } from './walks/refreshes.ts'
import { createRunStore } from './walks/runs.ts'
import { createWalkStore } from './walks/walks.ts'

export interface SqliteStoreOptions extends Patience {
  connection: Connection
  file: string
  /** `api.baseUrl`: no job can be acquired while the mirror holds the lists of another address. */
  baseUrl: string
  leases: Leases
  /** How long rows of `sync_runs` and closed walks are kept, in milliseconds. */
  keepRuns: number
}

/** The store on one SQLite file. */
export function openSqliteStore({
  connection,
  file,
  baseUrl,
  leases,
  keepRuns,
  ...patience
}: SqliteStoreOptions): Store {
  const { now } = patience
  const walks = createWalkStore(connection)
  const answers = connection.prepare(selectAnswers('?', '?'))
  const runs = createRunStore(connection)
  const jobs = createJobStore(connection)
  const refreshes = createRefreshStore(connection)
  const workOf = createOwnerReader(connection)
  const lookup = createLookup(connection)
  const pruneWalks = createPruning(connection)
  // A rollback also undoes the columns that its transaction added, so the cache is cleared.
  const collections = createSchemaCache<CollectionTables>(connection)
  const write = createTransact({ connection, file, ...patience, onRollback: collections.clear })
  const maintain = createMaintenance({ file, ...patience })
  const transact: Transact = (task, kind) =>
    write(() => {
      leases.assertAlive()
      return task()
    }, kind)
  const time = () => new Date(now()).toISOString()
  const ago = (ms: number) => new Date(now() - ms).toISOString()
  const read = <T>(task: () => T): T => translatingErrors(file, task)
  const options = { connection, transact, maintain, time }
  /** Warnings about tables that were opened since the last page. */
  const untold: Notice[] = []
  const openTables = (job: Pick<Job, 'collection'>) => {
    const { name } = job.collection
    return collections.get(name, () => {
      const tables = openCollection(connection, name, keyPathsOf(job))
      untold.push(...tables.warnings)
      return tables
    })
  }
  const commit = createCommit(connection)

  // `forget` may have deleted the organization since this process registered it.
  const addOrganization = connection.prepare(
    'INSERT OR IGNORE INTO organizations (id, name, configured) VALUES (?, ?, 1)',
  )
  const findTrace = connection.prepare(`
    SELECT 1 FROM sync_walks WHERE organization_id = :id AND collection = :name
    UNION ALL
    SELECT 1 FROM sync_rejects WHERE organization_id = :id AND collection = :name
    LIMIT 1
  `)

  function leaseOf(job: Job): Lease {
    const trace = findTrace.get({ id: job.organization.id, name: job.collection.name })
    const refusal = refusalOf(connection, job)
    const isNeverSynced = !refusal && trace === undefined && lookup.liveKeys(job, null).ids.length === 0
    return { job, refusal, lastWalk: walks.lastOutcome(job), isNeverSynced, ...refreshes.of(job) }
  }

  /** Writes a page, and adds the columns that it needs first. */
  async function writePage<T extends { notices: Notice[] }>(
    { collection }: Job,
    writeTo: (tables: CollectionTables) => Outcome<T>,
  ): Promise<T> {
    const attempt = () => {
      const outcome = writeTo(openTables({ collection }))
      if (outcome.changes) collections.clear()
      else collections.keep()
      return { ...outcome, notices: [...untold.splice(0), ...outcome.notices] }
    }
    const tried = await transact(attempt)
    const { result, notices } = tried.changes
      ? await changeColumnsAndWrite(options, collection.name, tried, attempt)
      : tried
    return { ...result, notices: [...notices, ...result.notices] }
  }

  /**
   * Runs a task: here, or in another process if its many rows would block the event loop for long. Its `at` is a time
   * within its transaction: who follows `orders_changes` by time would miss an event with an earlier one.
   */
  async function runTask<N extends TaskName>(
    name: N,
    argument: TaskArgument<N>,
    { what, rows }: { what: string; rows: number },
  ): Promise<TaskResult<N>> {
    if (rows > INLINE_ROWS) return maintain(name, argument, { what, rows })
    // The type of `TASKS` cannot express that each task takes its own argument.
    const run = TASKS[name].run as (connection: Connection, argument: TaskArgument<N>) => TaskResult<N>
    return transact(() => run(connection, { ...argument, at: time() }))
  }

  /** After runs that changed much, the first one of a mirror too, people's queries are planned by what is in the tables now. */
  async function analyze(): Promise<void> {
    const tables = await transact(() => tablesToAnalyze(connection))
    if (tables.length === 0) return
    const rows = read(() => rowsIn(connection, tables))
    await runTask('analyzeTables', { tables }, { what: `statistics of ${tables.join(', ')}`, rows })
  }

  return {
    acquire: ({ organization, collection, ...job }, isVerify) =>
      transact(() => {
        assertAddress(connection, baseUrl)
        addOrganization.run(organization.id, organization.name)
        const heldBy = leases.take(organization.id, collection.name, isVerify)
        if (heldBy !== null) return { heldBy, work: workOf({ organization, collection }, heldBy) }
        return { lease: leaseOf({ organization, collection, ...job }) }
      }),
    release: ({ job: { organization, collection } }) =>
      transact(() => leases.release(organization.id, collection.name)),

    openWalks: async (job) => read(() => walks.open(job)),
    beginRun: ({ job }, { resume, abandon, ...begin }) =>
      transact(() => {
        const at = time()
        for (const id of abandon) walks.abandon(id, at)
        const walk =
          resume === null ? walks.begin(job, begin, at) : walks.resume(job, resume, begin.first, at)
        return { walk, runId: runs.begin(job, walk, begin, at) }
      }),
    readLedger: async (walkId, after) => read(() => (answers.all(walkId, after) as LedgerRow[]).map(entryOf)),

    lookup: async (job, items) => read(() => lookup.items(job, items)),
    async commit({ job, rowsAdded }, { answer, ...page }) {
      if (!answer) {
        await transact(() => commit.checkpoint(page.walk.id, page.next, new Date(page.at).toISOString()))
        return { newRejects: 0, rowsAdded, notices: [] }
      }
      return writePage(job, (tables) => commit.answer(job, { ...page, answer }, tables))
    },
    beginRefresh: ({ job }, saved, within) =>
      transact(() => {
        refreshes.save(job, saved)
        return runs.beginRefresh(job, within, time())
      }),
    commitRefresh: ({ job }, page) => writePage(job, (tables) => commit.refreshed(job, page, tables)),
    saveRefresh: ({ job }, saved) => transact(() => refreshes.save(job, saved)),
    refreshes: async () => read(refreshes.all),

    async findMissing({ job }, rule) {
      const { rows } = read(() => jobs.state(job))
      // As many items were seen as there are rows: none is missing.
      const { walkId, keyed } = rule
      const isAlone = () => !isOverlapped(connection, job, walkId) && !isRefreshed(connection, walkId)
      const isNone = () => rows === keyed && !hasMissing(connection, job) && isAlone()
      if (!read(isNone)) {
        const what = `${nameOf(job)}: looking for rows that are no longer in the list`
        await runTask('noteMissing', { job, rule, at: time() }, { what, rows })
      }
      return read(() => countMissing(connection, job))
    },
    async closeWalk({ job }, { walk, run, outcome, removals, refresh }) {
      const { removable, held, live } = read(() => countMissing(connection, job))
      const verb = removals === 'remove' ? 'removing' : 'holding back'
      const left = removals === 'none' ? 0 : removable + held
      const isCounted =
        outcome !== null &&
        walk.kind === 'full' &&
        (left > 0 || read(() => isUncounted(connection, namesOf(job))))
      const what =
        left > 0
          ? `${nameOf(job)}: ${verb} ${counted(left, 'row')} that left the list`
          : `${nameOf(job)}: counting the values of each column`
      const rows = left + (isCounted ? live : 0)
      const argument = {
        job,
        walkId: walk.id,
        kind: walk.kind,
        runId: run.id,
        outcome,
        removals,
        refresh,
        at: time(),
      }
      return runTask('closeWalk', argument, { what, rows })
    },
    noteRetry: ({ job }, retry) => transact(() => jobs.noteRetry(job, retry)),
    finishRun: (_lease, run, outcome) => transact(() => runs.finish(run, outcome, time())),

    async prune(job) {
      const times = pruneTimes(ago, keepRuns)
      const { history } = job.collection
      // After a signal to stop, the next run prunes the rest.
      const isDone = await inBatches(patience, () => transact(() => pruneWalks(job, times)))
      if (isDone) await analyze()
      if (!isDone || typeof history !== 'number') return
      const end = ago(history)
      await inBatches(patience, () =>
        transact(() => {
          const isLast = openTables(job).pruneHistory(job.organization.id, end)
          collections.keep()
          return isLast
        }),
      )
    },
    liveKeys: async (job, from) => read(() => lookup.liveKeys(job, from)),
  }
}

function nameOf({ organization, collection }: Job): string {
  return `${organization.name} ${collection.name}`
}

function refusalOf(connection: Connection, job: Job): JobError | null {
  try {
    assertPossible(connection, job.collection.name, keyPathsOf(job))
    return null
  } catch (error) {
    if (error instanceof JobError) return error
    throw error
  }
}
