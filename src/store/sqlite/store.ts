import { JobError } from '../../errors.ts'
import type { CommitResult, Lease, Store } from '../../sync/store.ts'
import type { Job, Notice } from '../../sync/types.ts'
import { counted } from '../../text.ts'
import { keyPathsOf } from '../columns/catalog.ts'
import { isUncounted } from '../core/column-counts.ts'
import type { WrittenPage } from '../core/commit.ts'
import {
  allRefreshes,
  jobName,
  jobState,
  namesOf,
  noteRetry,
  ownerWork,
  refreshOf,
  saveRefresh,
} from '../core/jobs.ts'
import { countMissing, isComplete } from '../core/missing.ts'
import { pruneHistory, pruneTimes, pruneWalks } from '../core/prune.ts'
import { beginRun, finishRun } from '../core/runs.ts'
import { readShares, writeShare } from '../core/shares.ts'
import type { Rule } from '../core/sql.ts'
import {
  abandonWalk,
  beginWalk,
  lastOutcome,
  openWalks,
  readLedger,
  resumeWalk,
  saveCheckpoint,
} from '../core/walks.ts'
import { assertAddress } from './address.ts'
import { runRule, SQLITE } from './driver.ts'
import { translatingErrors } from './file/open.ts'
import type { Leases } from './leases.ts'
import { createMaintenance, TASKS, type TaskArgument, type TaskName, type TaskResult } from './maintenance.ts'
import type { Connection } from './sql.ts'
import { changeColumnsAndWrite, INLINE_ROWS } from './tables/alter.ts'
import { type CollectionTables, openCollection } from './tables/collection.ts'
import { assertPossible } from './tables/configured.ts'
import { createLookup, createSchemaCache } from './tables/lookup.ts'
import { rowsIn, tablesToAnalyze } from './tables/statistics.ts'
import { createTransact, inBatches, type Patience, type Transact } from './transaction.ts'
import { commitPage } from './walks/commit.ts'

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
  const lookup = createLookup(connection)
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
  const reading = <T>(rule: Rule<T>): T => read(() => runRule(connection, rule))
  /** `begin` begins the rule: again, if the transaction runs twice. */
  const writing = <T>(begin: () => Rule<T>) => transact(() => runRule(connection, begin()))
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
    return {
      job,
      refusal,
      lastWalk: runRule(connection, lastOutcome(job)),
      isNeverSynced,
      ...runRule(connection, refreshOf(job)),
    }
  }

  /** Writes a page, and adds the columns that it needs first. */
  async function writePage(page: WrittenPage): Promise<CommitResult> {
    const attempt = () => {
      const outcome = commitPage(connection, page, openTables(page.job))
      if (outcome.changes) collections.clear()
      else collections.keep()
      return { ...outcome, notices: [...untold.splice(0), ...outcome.notices] }
    }
    const tried = await transact(attempt)
    const { result, notices } = tried.changes
      ? await changeColumnsAndWrite(options, page.job.collection.name, tried, attempt)
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
        if (heldBy !== null)
          return { heldBy, work: runRule(connection, ownerWork({ organization, collection }, heldBy)) }
        return { lease: leaseOf({ organization, collection, ...job }) }
      }),
    release: ({ job: { organization, collection } }) =>
      transact(() => leases.release(organization.id, collection.name)),

    openWalks: async (job) => reading(openWalks(job)),
    beginRun: ({ job }, { resume, abandon, ...begin }) =>
      writing(function* () {
        const at = time()
        for (const id of abandon) yield* abandonWalk(id, at)
        const walk =
          resume === null ? yield* beginWalk(job, begin, at) : yield* resumeWalk(job, resume, begin.first, at)
        return { walk, runId: yield* beginRun(job, { ...begin, walk, within: null }, at) }
      }),
    readLedger: async (walkId, after) => reading(readLedger(walkId, after)),

    lookup: async (job, items) => read(() => lookup.items(job, items)),
    async commit({ job, rowsAdded }, { answer, walk, next, run, at }) {
      if (!answer) {
        await writing(() => saveCheckpoint(walk.id, next, at))
        return { newRejects: 0, rowsAdded, notices: [] }
      }
      const { entry, newToWalk } = answer
      return writePage({
        job,
        changes: answer,
        run,
        at,
        answer: { walk, entry, newToWalk, next },
        saved: null,
      })
    },
    beginRefresh: ({ job }, saved, within) =>
      writing(function* () {
        yield* saveRefresh(job, saved)
        return yield* beginRun(job, { walk: null, trigger: 'refresh', brief: true, within }, time())
      }),
    commitRefresh: ({ job }, { run, at, saved, ...changes }) =>
      writePage({ job, changes, run, at, answer: null, saved }),
    saveRefresh: async ({ job }, saved) => {
      await writing(() => saveRefresh(job, saved))
    },
    refreshes: async () => reading(allRefreshes()),
    shares: async (scopes) => reading(readShares(SQLITE, scopes)),
    writeShare: (share) => writing(() => writeShare(share)),

    async findMissing({ job }, rule) {
      if (!reading(isComplete(SQLITE, job, rule))) {
        const what = `${jobName(job)}: looking for rows that are no longer in the list`
        const { rows } = reading(jobState(job))
        await runTask('noteMissing', { job, rule, at: time() }, { what, rows })
      }
      return reading(countMissing(job))
    },
    async closeWalk({ job }, { walk, run, outcome, removals, refresh }) {
      const { removable, held, live } = reading(countMissing(job))
      const verb = removals === 'remove' ? 'removing' : 'holding back'
      const left = removals === 'none' ? 0 : removable + held
      const isCounted =
        outcome !== null && walk.kind === 'full' && (left > 0 || reading(isUncounted(namesOf(job))))
      const what =
        left > 0
          ? `${jobName(job)}: ${verb} ${counted(left, 'row')} that left the list`
          : `${jobName(job)}: counting the values of each column`
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
    noteRetry: async ({ job }, retry) => {
      await writing(() => noteRetry(job, retry))
    },
    finishRun: (_lease, run, outcome) => writing(() => finishRun(run, outcome, time())),

    async prune(job) {
      const times = pruneTimes(ago, keepRuns)
      const { history } = job.collection
      // After a signal to stop, the next run prunes the rest.
      const isDone = await inBatches(patience, () => writing(() => pruneWalks(SQLITE, job, times)))
      if (isDone) await analyze()
      if (!isDone || typeof history !== 'number') return
      const end = ago(history)
      await inBatches(patience, () => writing(() => pruneHistory(SQLITE, job, end)))
    },
    liveKeys: async (job, from) => read(() => lookup.liveKeys(job, from)),
  }
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
