import { InterruptedError } from '../../errors.ts'
import type { CommitResult, Lease, PageCommit, Store } from '../../sync/store.ts'
import type { Job } from '../../sync/types.ts'
import { leaseOf, ownerOf } from './acquire.ts'
import { readShares, writeShare } from './budgets.ts'
import { commitPage } from './commit.ts'
import { allRefreshes, asOwner, type LockedJob, namesOf, noteRetry, ownJobOf, saveRefresh } from './jobs.ts'
import {
  createTables,
  fitTables,
  type Fitted,
  type KnownTables,
  knownTables,
  noticesOfFull,
  placeRows,
} from './known-tables.ts'
import type { Leases } from './leases.ts'
import { countMissing, holdMissing, noteMissing, reasonOfMissing, removeMissing } from './missing.ts'
import { pruneHistory, pruneWalks } from './prune.ts'
import { liveKeys, lookUp, type PlacedRow } from './rows.ts'
import { beginRun, finishRun } from './runs.ts'
import { type Dialect, type Keys, type Rule, type Runner, timeOf } from './sql.ts'
import { abandonWalk, beginWalk, closeWalk, openWalks, readLedger, resumeWalk } from './walks.ts'

export interface StoreOptions {
  runner: Runner
  leases: Pick<Leases, 'take' | 'release'>
  /** `api.baseUrl`: no job can be acquired while the mirror holds the lists of another address. */
  baseUrl: string
  /** How long rows of `sync_runs` and closed walks are kept, in milliseconds. */
  keepRuns: number
}

export function createStore({ runner, leases, baseUrl, keepRuns }: StoreOptions): Store {
  const { dialect, now, reading, writing, inBatches } = runner
  const tables = createTables(runner)
  const time = () => timeOf(now())
  const ago = (ms: number) => timeOf(now() - ms)
  const owned = <T>(lease: Lease, begin: (row: LockedJob) => Rule<T>) =>
    writing(() => asOwner(dialect, ownJobOf(lease), begin))

  async function readingRows<T>({ collection }: Job, begin: (keys: Keys) => Rule<T>): Promise<T> {
    const known = await tables.now(collection.name)
    return reading(begin(known.catalog.keys)).catch(async (error: unknown) => {
      // Another worker may have made the key TEXT meanwhile.
      const later = await tables.now(collection.name)
      if (later.version === known.version) throw error
      return reading(begin(later.catalog.keys))
    })
  }

  const liveIds = (job: Job, from: string | null) =>
    readingRows(job, (keys) => liveKeys(dialect, keys, job, from))

  /** Does work in batches, so that neither the event loop nor other processes wait for all of it. Throws InterruptedError after the signal. */
  async function allBatches(batch: () => Promise<boolean>): Promise<void> {
    if (!(await inBatches(batch))) throw new InterruptedError('stopped')
  }

  /** Changes the tables first if the page needs that. */
  async function commit(lease: Lease, page: PageCommit): Promise<CommitResult> {
    const known = await tables.of(lease.job.collection.name)
    const rows = placeRows(dialect, known, page.changes.upserts)
    // No generator function of its own: V8 would keep one, and the page with it, until its next full collection.
    const begin = (row: LockedJob) => commitFitted(dialect, lease.job, page, { known, rows }, row)
    const write = () => asOwner(dialect, ownJobOf(lease), begin, rows ? 'keep' : 'change')
    const { fitted, result } = await writing(write)
    if (fitted.tables !== known) tables.note(fitted.tables)
    return { ...result, notices: [...fitted.notices, ...noticesOfFull(fitted)] }
  }

  return {
    async acquire(job, isVerify = false) {
      const lease = await leases.take(namesOf(job), isVerify, () => leaseOf(dialect, job, baseUrl, time()))
      return lease ? { lease } : { heldBy: await reading(ownerOf(job)) }
    },
    release: (lease) => leases.release(ownJobOf(lease)),
    openWalks: (job) => reading(openWalks(job)),
    beginRun: (lease, { resume, abandon, ...begin }) =>
      owned(lease, function* () {
        const { job } = lease
        const at = time()
        for (const id of abandon) yield* abandonWalk(id, at)
        const walk =
          resume === null ? yield* beginWalk(job, begin, at) : yield* resumeWalk(job, resume, begin, at)
        return { walk, runId: yield* beginRun(job, { ...begin, walk, within: null }, at) }
      }),
    readLedger: (walkId, after) => reading(readLedger(walkId, after)),

    lookup: (job, items) => readingRows(job, (keys) => lookUp(dialect, keys, job, items)),
    commit,
    beginRefresh: (lease, state, within) =>
      owned(lease, function* () {
        yield* saveRefresh(lease.job, state)
        return yield* beginRun(lease.job, { walk: null, trigger: 'refresh', brief: true, within }, time())
      }),
    saveRefresh: async (lease, state) => {
      await owned(lease, () => saveRefresh(lease.job, state))
    },
    refreshes: () => reading(allRefreshes()),
    shares: (budgetKeys) => reading(readShares(dialect, budgetKeys)),
    writeShare: (share) => writing(() => writeShare(share)),

    async findMissing(lease, rule) {
      const { job } = lease
      const reason = await owned(lease, (row) => reasonOfMissing(job, rule, row))
      let from: string | null = null
      if (reason)
        await allBatches(async () => {
          const { ids, next } = await liveIds(job, from)
          const unseen = ids.filter((id) => !rule.isSeen(id))
          if (unseen.length > 0) await owned(lease, () => noteMissing(dialect, job, rule, unseen, reason))
          from = next
          return next === null
        })
      return owned(lease, (row) => countMissing(job, row))
    },
    async closeWalk(lease, end) {
      const { job } = lease
      const { removals } = end
      if (removals !== 'none')
        await allBatches(() =>
          owned(lease, () =>
            removals === 'remove' ? removeMissing(dialect, job, end.run.id, time()) : holdMissing(job),
          ),
        )
      return owned(lease, () => closeWalk(job, end, time()))
    },
    noteRetry: async (lease, retry) => {
      await owned(lease, () => noteRetry(lease.job, retry))
    },
    finishRun: (run, outcome) => writing(() => finishRun(run, outcome, time())),

    async prune(job) {
      const { history } = job.collection
      // After a signal to stop, the next run prunes the rest.
      await inBatches(() => writing(() => pruneWalks(job, ago(keepRuns))))
      if (typeof history === 'number')
        await inBatches(() => writing(() => pruneHistory(dialect, job, ago(history))))
      await runner.analyze?.()
    },
    liveKeys: liveIds,
  }
}

/** Writes a page whose rows were placed in the tables as this process knew them; anew, if they have changed or have to. */
function* commitFitted(
  dialect: Dialect,
  job: Job,
  page: PageCommit,
  { known, rows }: { known: KnownTables; rows: PlacedRow[] | null },
  row: LockedJob,
) {
  const { name } = job.collection
  const { upserts } = page.changes
  const isKnown = row.tables === known.version
  const tables = isKnown ? known : yield* knownTables(dialect, name)
  const fitting = isKnown ? rows : placeRows(dialect, tables, upserts)
  const fitted: Fitted = fitting
    ? { tables, rows: fitting, notices: [] }
    : yield* fitTables(dialect, name, upserts, timeOf(page.at))
  return { fitted, result: yield* commitPage(dialect, fitted, job, page, row) }
}
