import { JobError } from '../../errors.ts'
import type { Acquired, Lease, Store } from '../../sync/store.ts'
import type { Job } from '../../sync/types.ts'
import { closeWalk } from '../core/close.ts'
import {
  allRefreshes,
  jobName,
  namesOf,
  noteRetry,
  OF_JOB,
  ownerWork,
  refreshOf,
  saveRefresh,
} from '../core/jobs.ts'
import { countMissing, isComplete, noteMissing } from '../core/missing.ts'
import { pruneHistory, pruneTimes, pruneWalks } from '../core/prune.ts'
import { beginRun, finishRun } from '../core/runs.ts'
import { readShares, writeShare } from '../core/shares.ts'
import { one, type Rule, run as runStatement, timeOf } from '../core/sql.ts'
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
import { POSTGRES, runRule } from './driver.ts'
import type { Leases } from './leases.ts'
import type { Patience, Server } from './server/server.ts'
import type { Sql } from './sql.ts'
import { createCollections } from './tables/collection.ts'
import { assertPossible } from './tables/configured.ts'
import { lookUp, readLiveKeys } from './tables/lookup.ts'
import { createCommit } from './walks/commit.ts'
import { asOwner, NEW_EPOCH } from './walks/job.ts'

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
      await assertAddress(sql, baseUrl)
      await sql.rows(
        'INSERT INTO organizations (id, name, configured) VALUES ($1, $2, 1) ON CONFLICT (id) DO NOTHING',
        [job.organization.id, job.organization.name],
      )
      const row = await runRule(
        sql,
        one<{ epoch: number }>(TAKE_OVER, {
          ...namesOf(job),
          owner: leases.name,
          verifying: isVerify ? 1 : 0,
        }),
      )
      return leaseOf(sql, job, row?.epoch ?? 0)
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
        await reading(runStatement(RELEASE, { ...namesOf(job), epoch: epochOf(lease) }))
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
    shares: (scopes) => reading(readShares(POSTGRES, scopes)),
    writeShare: (share) => server.transaction((sql) => runRule(sql, writeShare(share))),

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

const TAKE_OVER = `
  INSERT INTO sync_jobs (organization_id, collection, configured, owner, epoch, verifying)
  VALUES (:organization, :collection, 1, :owner, ${NEW_EPOCH}, :verifying)
  ON CONFLICT (organization_id, collection) DO UPDATE
  SET owner = excluded.owner, epoch = excluded.epoch, verifying = excluded.verifying,
    retry_since = NULL, retry_until = NULL, retry_error = NULL
  RETURNING epoch
`

const RELEASE = `UPDATE sync_jobs SET owner = NULL, verifying = 0 WHERE ${OF_JOB} AND epoch = :epoch`

/** Who has a job whose lock is taken, and what that one does. */
function* heldByOther(job: Job): Rule<Acquired & { heldBy: string }> {
  const known = yield* one<{ owner: string | null }>(
    `SELECT owner FROM sync_jobs WHERE ${OF_JOB}`,
    namesOf(job),
  )
  if (!known || known.owner === null) return { heldBy: 'another process', work: null }
  return { heldBy: known.owner, work: yield* ownerWork(job, known.owner) }
}

async function leaseOf(sql: Sql, job: Job, epoch: number): Promise<OwnLease> {
  const { name, key } = job.collection
  const refusal = await assertPossible(sql, { name, key }).then(() => null, refusalOf)
  const trace = await runRule(sql, one(TRACE, namesOf(job)))
  const lastWalk = await runRule(sql, lastOutcome(job))
  const isNeverSynced = refusal === null && trace === null
  return { job, refusal, lastWalk, isNeverSynced, ...(await runRule(sql, refreshOf(job))), epoch }
}

const TRACE = `
  SELECT 1 FROM sync_walks WHERE ${OF_JOB}
  UNION ALL
  SELECT 1 FROM sync_rejects WHERE ${OF_JOB}
  UNION ALL
  SELECT 1 FROM sync_jobs WHERE ${OF_JOB} AND rows > 0
  LIMIT 1
`

/** Only leases of `acquire` have one. */
function epochOf(lease: Omit<Lease, 'job'>): number {
  return (lease as OwnLease).epoch
}

function refusalOf(error: unknown): JobError {
  if (error instanceof JobError) return error
  throw error
}
