import type { CommitResult, Lease, PageCommit, Store } from '../../sync/store.ts'
import type { Job } from '../../sync/types.ts'
import { readShares, writeShare } from './budgets.ts'
import { commitPage } from './commit.ts'
import { type TableAccess, typedRows, writeFitting } from './fit.ts'
import { allRefreshes, asOwner, type LockedJob, noteRetry, ownJobOf, saveRefresh } from './jobs.ts'
import { liveKeys } from './key-order.ts'
import { countMissing, isNothingMissing, type Judged } from './missing.ts'
import { pruneHistory, pruneWalks } from './prune.ts'
import { lookUp } from './rows.ts'
import { beginRun, finishRun } from './runs.ts'
import { type Keys, type Rule, type Runner, timeOf } from './sql.ts'
import { abandonWalk, beginWalk, type Closing, openWalks, readLedger, resumeWalk } from './walks.ts'

export type Untimed<T> = Omit<T, 'at'>

/** What the methods need of a database. */
export interface Machinery extends Runner, TableAccess {
  /** Runs a rule that reads the rows of a collection; with null where it has no tables. */
  readingRows<T>(job: Job, begin: (keys: Keys | null) => Rule<T>): Promise<T>
  /** Rules that may read all rows of a job. Their `at` is read in their transaction. */
  noteMissing(lease: Lease, judged: Untimed<Judged>): Promise<void>
  closeWalk(lease: Lease, closing: Untimed<Closing>): ReturnType<Store['closeWalk']>
}

/** All methods of a store but `acquire` and `release`. `keepRuns`: milliseconds. */
export function createStore(machinery: Machinery, keepRuns: number): Omit<Store, 'acquire' | 'release'> {
  const { dialect, now, reading, writing, readingRows, inBatches } = machinery
  const time = () => timeOf(now())
  const ago = (ms: number) => timeOf(now() - ms)
  const owned = <T>(lease: Lease, begin: () => Rule<T>) =>
    writing(() => asOwner(dialect, ownJobOf(lease), begin))

  /** Changes the tables first if the page needs that. */
  async function commit(lease: Lease, page: PageCommit): Promise<CommitResult> {
    const { job } = lease
    const { upserts } = page.changes
    const wanted = {
      keys: upserts.map(({ key }) => key.parts),
      items: upserts.map(({ value }) => value),
    }
    const { result, notices } = await writeFitting(
      machinery,
      job.collection,
      timeOf(page.at),
      function* (tables) {
        const typed = typedRows(dialect, tables, wanted)
        if (!typed) return { wanted }
        const write = (row: LockedJob) => commitPage(dialect, tables.writer, typed, job, page, row)
        const written = yield* asOwner(dialect, ownJobOf(lease), write)
        return { result: { ...written, notices: dialect.rowNotices(upserts, typed) } }
      },
    )
    return { ...result, notices: [...notices, ...result.notices] }
  }

  return {
    openWalks: (job) => reading(openWalks(job)),
    beginRun: (lease, { resume, abandon, ...begin }) =>
      owned(lease, function* () {
        const { job } = lease
        const at = time()
        for (const id of abandon) yield* abandonWalk(id, at)
        const walk =
          resume === null ? yield* beginWalk(job, begin, at) : yield* resumeWalk(job, resume, begin.rules, at)
        return { walk, runId: yield* beginRun(job, { ...begin, walk, within: null }, at) }
      }),
    readLedger: (walkId, after) => reading(readLedger(walkId, after)),

    lookup: (job, items) => readingRows(job, (keys) => lookUp(dialect, keys, job, items)),
    commit,
    beginRefresh: (lease, saved, within) =>
      owned(lease, function* () {
        yield* saveRefresh(lease.job, saved)
        return yield* beginRun(lease.job, { walk: null, trigger: 'refresh', brief: true, within }, time())
      }),
    saveRefresh: async (lease, saved) => {
      await owned(lease, () => saveRefresh(lease.job, saved))
    },
    refreshes: () => reading(allRefreshes()),
    shares: (budgetKeys) => reading(readShares(dialect, budgetKeys)),
    writeShare: (share) => writing(() => writeShare(share)),

    async findMissing(lease, rule) {
      const { job } = lease
      if (!(await reading(isNothingMissing(dialect, job, rule))))
        await machinery.noteMissing(lease, { job, rule })
      return reading(countMissing(job))
    },
    closeWalk: (lease, { walk, run, ...end }) => {
      const { job } = lease
      return machinery.closeWalk(lease, { ...end, job, walkId: walk.id, kind: walk.kind, runId: run.id })
    },
    noteRetry: async (lease, retry) => {
      await owned(lease, () => noteRetry(lease.job, retry))
    },
    finishRun: (run, outcome) => writing(() => finishRun(run, outcome, time())),

    async prune(job) {
      const { history } = job.collection
      // After a signal to stop, the next run prunes the rest.
      const isDone = await inBatches(() => writing(() => pruneWalks(dialect, job, ago, keepRuns)))
      if (!isDone || typeof history !== 'number') return
      const end = ago(history)
      await inBatches(() => writing(() => pruneHistory(dialect, job, end)))
    },
    liveKeys: (job, from) => readingRows(job, (keys) => liveKeys(keys, job, from)),
  }
}
