import type { Mirror } from '../../src/sync/mirror.ts'
import type { Job } from '../../src/sync/types.ts'
import type { Tell } from './happening.ts'
import type { SimulatedProcess } from './process.ts'

/** The mirror as a process uses it: each call has a moment before and after it, and a dead process gets no answer. */
export function steppedMirror(mirror: Mirror, process: SimulatedProcess, tell: Tell): Mirror {
  const jobOf = new Map<number, Job>()

  async function call<T>(work: () => Promise<T>): Promise<T> {
    if (!process.isAlive()) return new Promise(() => {})
    process.step('before mirror call')
    const result = await work()
    process.step('after mirror call')
    return result
  }

  return {
    claimJob: (job) =>
      call(async () => {
        const claim = await mirror.claimJob(job)
        tell({ kind: claim.taken ? 'claimed' : 'busy', process, job })
        return claim
      }),
    releaseJob: (job) =>
      call(() => {
        tell({ kind: 'releasing', process, job })
        return mirror.releaseJob(job)
      }),
    openWalks: (job) => call(() => mirror.openWalks(job)),
    beginWalk: (job, beginning) => call(() => mirror.beginWalk(job, beginning)),
    resumeWalk: (walk) => call(() => mirror.resumeWalk(walk)),
    readLedger: (walk, after) => call(() => mirror.readLedger(walk, after)),
    beginRun: (job, walk, trigger) =>
      call(async () => {
        const run = await mirror.beginRun(job, walk, trigger)
        jobOf.set(run, job)
        tell({ kind: 'run began', process, job, run, walk: walk.id, resumed: walk.resumed })
        return run
      }),
    cancelRun: (run) =>
      call(async () => {
        await mirror.cancelRun(run)
        tell({ kind: 'run cancelled', process, run })
      }),
    assertKey: (job) => call(() => mirror.assertKey(job)),
    savePage: (commit) => call(() => mirror.savePage(commit)),
    saveCheckpoint: (walk, next) => call(() => mirror.saveCheckpoint(walk, next)),
    newRejects: (walk) => call(() => mirror.newRejects(walk)),
    findMissing: (job, walk, seen, atOnce) => call(() => mirror.findMissing(job, walk, seen, atOnce)),
    holdMissing: (job, why) => call(() => mirror.holdMissing(job, why)),
    removeMissing: (job, run) => call(() => mirror.removeMissing(job, run)),
    completeWalk: (job, walk, outcome) => call(() => mirror.completeWalk(job, walk, outcome)),
    abandonWalk: (walk) => call(() => mirror.abandonWalk(walk)),
    finishRun: (run, outcome) =>
      call(async () => {
        const record = await mirror.finishRun(run, outcome)
        const job = jobOf.get(run.id)
        if (job) tell({ kind: 'run finished', process, job, run: run.id, outcome, record })
        return record
      }),
    prune: (job) => call(() => mirror.prune(job)),
  }
}
