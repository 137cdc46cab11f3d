import type { Store } from '../../src/sync/store.ts'
import { nameOf, type Tell } from './happening.ts'
import type { SimulatedProcess } from './process.ts'

/** The store as a process uses it: each call has a moment before and after it, and a dead process gets no answer. */
export function steppedStore(store: Store, process: SimulatedProcess, tell: Tell): Store {
  /** By run, its job. */
  const runs = new Map<number, { job: string; kind: 'run' | 'refresh' }>()

  async function call<T>(work: () => Promise<T>): Promise<T> {
    if (!process.isAlive()) return new Promise(() => {})
    process.step('before mirror call')
    const result = await work()
    process.step('after mirror call')
    return result
  }

  const stepped = Object.fromEntries(
    Object.entries(store).map(([name, method]) => [
      name,
      (...values: unknown[]) => call(() => (method as (...values: unknown[]) => Promise<unknown>)(...values)),
    ]),
  ) as unknown as Store

  return {
    ...stepped,
    acquire: (job, isVerify) =>
      call(async () => {
        const acquired = await store.acquire(job, isVerify)
        tell({ kind: acquired.lease ? 'claimed' : 'busy', process, job: nameOf(job) })
        return acquired
      }),
    release: (lease) =>
      call(() => {
        tell({ kind: 'releasing', process, job: nameOf(lease.job) })
        return store.release(lease)
      }),
    beginRun: (lease, begin) =>
      call(async () => {
        const { runId: run, walk } = await store.beginRun(lease, begin)
        const job = nameOf(lease.job)
        runs.set(run, { job, kind: 'run' })
        tell({ kind: 'run began', process, job, run, walk: walk.id, resumed: walk.resumed })
        return { runId: run, walk }
      }),
    beginRefresh: (lease, saved, within) =>
      call(async () => {
        const run = await store.beginRefresh(lease, saved, within)
        const job = nameOf(lease.job)
        runs.set(run, { job, kind: 'refresh' })
        const { filters } = lease.job.collection
        tell({ kind: 'refresh began', process, job, run, within: within?.id ?? null, filters })
        return run
      }),
    finishRun: (run, outcome) =>
      call(async () => {
        const record = await store.finishRun(run, outcome)
        const { job, kind } = runs.get(run.id) ?? {}
        const { status, errorCode: code } = outcome
        if (status === 'refused') tell({ kind: 'run cancelled', process, run: run.id })
        else if (job) tell({ kind: `${kind ?? 'run'} finished`, process, job, run: run.id, status, code })
        return record
      }),
  }
}
