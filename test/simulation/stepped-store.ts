import type { Store } from '../../src/sync/store.ts'
import type { Job } from '../../src/sync/types.ts'
import type { Tell } from './happening.ts'
import type { SimulatedProcess } from './process.ts'

/** The store as a process uses it: each call has a moment before and after it, and a dead process gets no answer. */
export function steppedStore(store: Store, process: SimulatedProcess, tell: Tell): Store {
  const jobOf = new Map<number, Job>()
  const refreshes = new Set<number>()

  async function call<T>(work: () => Promise<T>): Promise<T> {
    if (!process.isAlive()) return new Promise(() => {})
    process.step('before mirror call')
    const result = await work()
    process.step('after mirror call')
    return result
  }

  return {
    acquire: (job, isVerify) =>
      call(async () => {
        const acquired = await store.acquire(job, isVerify)
        tell({ kind: acquired.lease ? 'claimed' : 'busy', process, job })
        return acquired
      }),
    release: (lease) =>
      call(() => {
        tell({ kind: 'releasing', process, job: lease.job })
        return store.release(lease)
      }),
    openWalks: (job) => call(() => store.openWalks(job)),
    beginRun: (lease, begin) =>
      call(async () => {
        const { runId: run, walk } = await store.beginRun(lease, begin)
        const { job } = lease
        jobOf.set(run, job)
        refreshes.delete(run)
        tell({ kind: 'run began', process, job, run, walk: walk.id, resumed: walk.resumed })
        return { runId: run, walk }
      }),
    readLedger: (walk, after) => call(() => store.readLedger(walk, after)),
    lookup: (job, items) => call(() => store.lookup(job, items)),
    beginRefresh: (lease, saved, within) =>
      call(async () => {
        const run = await store.beginRefresh(lease, saved, within)
        jobOf.set(run, lease.job)
        refreshes.add(run)
        tell({ kind: 'refresh began', process, job: lease.job, run, within: within?.id ?? null })
        return run
      }),
    saveRefresh: (lease, saved) => call(() => store.saveRefresh(lease, saved)),
    noteRetry: (lease, retry) => call(() => store.noteRetry(lease, retry)),
    refreshes: () => call(() => store.refreshes()),
    shares: (budgetKeys) => call(() => store.shares(budgetKeys)),
    writeShare: (share) => call(() => store.writeShare(share)),
    commit: (lease, page) => call(() => store.commit(lease, page)),
    findMissing: (lease, rule) => call(() => store.findMissing(lease, rule)),
    closeWalk: (lease, end) => call(() => store.closeWalk(lease, end)),
    finishRun: (run, outcome) =>
      call(async () => {
        const record = await store.finishRun(run, outcome)
        const job = jobOf.get(run.id)
        if (outcome.status === 'refused') tell({ kind: 'run cancelled', process, run: run.id })
        else if (job)
          tell({
            kind: refreshes.has(run.id) ? 'refresh finished' : 'run finished',
            process,
            job,
            run: run.id,
            outcome,
            record,
          })
        return record
      }),
    prune: (job) => call(() => store.prune(job)),
    liveKeys: (job, from) => call(() => store.liveKeys(job, from)),
  }
}
