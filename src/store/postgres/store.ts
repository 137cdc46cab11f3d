import { JobError } from '../../errors.ts'
import type { Lease, Store } from '../../sync/store.ts'
import type { Job } from '../../sync/types.ts'
import { closeWalk } from '../core/close.ts'
import { allRefreshes, jobName, namesOf, noteRetry, saveRefresh } from '../core/jobs.ts'
import { heldByOther, leaseOf, noteOwner, prepareJob, releaseJob } from '../core/leases.ts'
import { countMissing, isComplete, noteMissing } from '../core/missing.ts'
import { pruneHistory, pruneTimes, pruneWalks } from '../core/prune.ts'
import { beginRun, finishRun } from '../core/runs.ts'
import { assertSameApi, claimAddress, isOfAddress, type Place } from '../core/settings.ts'
import { type Rule, timeOf } from '../core/sql.ts'
import { abandonWalk, beginWalk, openWalks, readLedger, resumeWalk, saveCheckpoint } from '../core/walks.ts'
import { POSTGRES, runRule } from './driver.ts'
import { asOwner, type Leases, newEpoch } from './leases.ts'
import type { Patience, Server } from './server/server.ts'
import type { Sql } from './sql.ts'
import { createCollections } from './tables/collection.ts'
import { assertPossible } from './tables/configured.ts'
import { lookUp, readLiveKeys } from './tables/lookup.ts'
import { createCommit } from './walks/commit.ts'

export interface PostgresStoreOptions extends Pick<Patience, 'now' | 'signal'> {
  server: Server
  leases: Leases
  /** `api.baseUrl`: no job can be acquired while the mirror holds the lists of another address. */
  baseUrl: string
  /** How long rows of `sync_runs` and closed walks are kept, in milliseconds. */
  keepRuns: number
}

/** The right to work on a job, as long as no other worker has taken it since. */
interface OwnLease extends Lease {
  epoch: number
}

/** The store on a PostgreSQL schema, for any number of workers. */
export function openPostgresStore(options: PostgresStoreOptions): Store {
  const { server, leases, baseUrl, keepRuns, now, signal } = options
  const collections = createCollections(server)
  const commit = createCommit(server, collections)
  const time = () => timeOf(now())
  const ago = (ms: number) => timeOf(now() - ms)
  const reading = <T>(rule: Rule<T>) => runRule(server, rule)

  const owned =
    ({ job, ...lease }: Lease) =>
    <T>(task: (sql: Sql) => Promise<T>): Promise<T> =>
      asOwner(server, { job: namesOf(job), epoch: epochOf(lease), name: jobName(job) }, task)
  /** `begin` begins the rule: again, if the transaction runs twice. */
  const writing = <T>(lease: Lease, begin: () => Rule<T>) => owned(lease)((sql) => runRule(sql, begin()))

  /** Takes the job whose lock we have. Its former owner can write nothing from then on. */
  function takeOver(job: Job, isVerify: boolean): Promise<OwnLease> {
    return server.transaction(async (sql) => {
      await runRule(sql, prepareJob(job, baseUrl))
      await runRule(sql, noteOwner(namesOf(job), leases.name, isVerify))
      const taken = await runRule(sql, newEpoch(namesOf(job)))
      const { name, key } = job.collection
      const refusal = await assertPossible(sql, { name, key }).then(() => null, refusalOf)
      return { ...(await runRule(sql, leaseOf(job, refusal))), epoch: taken?.epoch ?? 0 }
    })
  }

  return {
    async acquire(job, isVerify = false) {
      const { organization, collection } = namesOf(job)
      if (!(await leases.lock(organization, collection))) return reading(heldByOther(job))
      try {
        return { lease: await takeOver(job, isVerify) }
      } catch (error) {
        await leases.unlock(organization, collection)
        throw error
      }
    },
    async release({ job, ...lease }) {
      const { organization, collection } = namesOf(job)
      try {
        await reading(releaseJob(namesOf(job), { epoch: epochOf(lease) }))
      } finally {
        // Nobody could read a list whose lock stays while this process lives.
        await leases.unlock(organization, collection)
      }
    },

    openWalks: (job) => reading(openWalks(job)),
    beginRun: (lease, { resume, abandon, ...begin }) =>
      writing(lease, function* () {
        const { job } = lease
        const at = time()
        for (const id of abandon) yield* abandonWalk(id, at)
        const walk =
          resume === null ? yield* beginWalk(job, begin, at) : yield* resumeWalk(job, resume, begin.first, at)
        return { walk, runId: yield* beginRun(job, { ...begin, walk, within: null }, at) }
      }),
    readLedger: (walkId, after) => reading(readLedger(walkId, after)),

    lookup: (job, items) => lookUp(server, collections, job, items),
    async commit(lease, { answer, walk, next, at, run }) {
      const { job, rowsAdded } = lease
      if (!answer) {
        await writing(lease, () => saveCheckpoint(walk.id, next, at))
        return { newRejects: 0, rowsAdded, notices: [] }
      }
      const { entry, newToWalk } = answer
      const page = { job, changes: answer, run, at, answer: { walk, entry, newToWalk, next }, saved: null }
      return commit.page(owned(lease), page)
    },
    beginRefresh: (lease, saved, within) =>
      writing(lease, function* () {
        const { job } = lease
        yield* saveRefresh(job, saved)
        return yield* beginRun(job, { walk: null, trigger: 'refresh', brief: true, within }, time())
      }),
    commitRefresh: (lease, { run, at, saved, ...changes }) =>
      commit.page(owned(lease), { job: lease.job, changes, run, at, answer: null, saved }),
    saveRefresh: async (lease, saved) => {
      await writing(lease, () => saveRefresh(lease.job, saved))
    },
    refreshes: () => reading(allRefreshes()),

    async findMissing(lease, rule) {
      const { job } = lease
      if (!(await reading(isComplete(POSTGRES, job, rule))))
        await collections.retrying(job, ({ shape }) =>
          writing(lease, () => noteMissing(POSTGRES, shape, { job, rule, at: time() })),
        )
      return reading(countMissing(job))
    },
    closeWalk: (lease, { walk, run, ...end }) => {
      const closing = { ...end, job: lease.job, walkId: walk.id, kind: walk.kind, runId: run.id, at: time() }
      return collections.retrying(lease.job, ({ shape }) =>
        writing(lease, () => closeWalk(POSTGRES, shape, closing)),
      )
    },
    noteRetry: async (lease, retry) => {
      await writing(lease, () => noteRetry(lease.job, retry))
    },
    finishRun: (_lease, run, outcome) =>
      server.transaction((sql) => runRule(sql, finishRun(run, outcome, time()))),

    async prune(job) {
      const { history } = job.collection
      const times = pruneTimes(ago, keepRuns)
      // After a signal to stop, the next run prunes the rest.
      while (!(await reading(pruneWalks(POSTGRES, job, times)))) if (signal.aborted) return
      if (typeof history !== 'number' || signal.aborted) return
      const end = ago(history)
      while (!(await reading(pruneHistory(POSTGRES, job, end)))) if (signal.aborted) return
    },
    liveKeys: (job, from) => readLiveKeys(server, collections, job, from),
  }
}

/** Only leases of `acquire` have one. */
function epochOf(lease: Omit<Lease, 'job'>): number {
  return (lease as OwnLease).epoch
}

function refusalOf(error: unknown): JobError {
  if (error instanceof JobError) return error
  throw error
}

/** Notes the API whose lists the schema holds, as `claimAddress` of the core. */
export async function claimAddressOn(
  server: Server,
  baseUrl: string,
  accept: boolean,
): Promise<string | null> {
  if (await runRule(server, isOfAddress(baseUrl))) return null
  return server.transaction(async (sql) => {
    // One after another, since each may find none.
    await sql.exec('LOCK TABLE sync_settings IN SHARE ROW EXCLUSIVE MODE')
    return runRule(sql, claimAddress(baseUrl, accept, placeOf(server)))
  })
}

/** Throws UsageError if the schema holds the lists of another address. */
export function assertSameApiOn(server: Server, baseUrl: string): Promise<void> {
  return runRule(server, assertSameApi(baseUrl, placeOf(server)))
}

function placeOf({ address: { schema, database } }: Server): Place {
  return { place: `the schema ${schema} of the database ${database}`, other: 'schema in "database"' }
}
