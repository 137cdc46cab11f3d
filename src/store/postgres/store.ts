import { JobError } from '../../errors.ts'
import type { Lease, Store } from '../../sync/store.ts'
import type { Job } from '../../sync/types.ts'
import { entryOf, type LedgerRow, selectAnswers } from '../ledger.ts'
import { pruneTimes } from '../prune.ts'
import { assertAddress } from './address.ts'
import type { Leases } from './leases.ts'
import type { Patience, Server } from './server/server.ts'
import { type Sql, storable } from './sql.ts'
import { createCollections } from './tables/collection.ts'
import { assertPossible } from './tables/configured.ts'
import { lookUp, readLiveKeys } from './tables/lookup.ts'
import { recordColumns } from './walks/column-counts.ts'
import { createCommit } from './walks/commit.ts'
import { asOwner, NEW_EPOCH, nameOf, OF_JOB, ofJob, timeOf } from './walks/job.ts'
import {
  confirmScope,
  countMissing,
  heldRemovals,
  holdMissing,
  isOverlapped,
  isRefreshed,
  noteMissing,
  removeMissing,
} from './walks/missing.ts'
import { readOwner } from './walks/owner.ts'
import { pruneJob } from './walks/prune.ts'
import { allRefreshes, refreshOf, saveRefresh } from './walks/refreshes.ts'
import { beginRun, finishRun } from './walks/runs.ts'
import {
  abandonWalk,
  beginWalk,
  completeWalk,
  lastOutcome,
  openWalks,
  resumeWalk,
  saveCheckpoint,
} from './walks/walks.ts'

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
  /** By job, the pages that its last refresh has written: a walk goes on with it after its end. */
  const refreshPages = new Map<string, { run: number; pages: number }>()

  function owned<T>({ job, ...lease }: Lease, task: (sql: Sql) => Promise<T>): Promise<T> {
    return asOwner(server, { job: ofJob(job), epoch: epochOf(lease), name: nameOf(job) }, task)
  }

  /** Takes the job whose lock we have. Its former owner can write nothing from then on. */
  function takeOver(job: Job, isVerify: boolean): Promise<OwnLease> {
    return server.transaction(async (sql) => {
      await assertAddress(sql, baseUrl)
      await sql.rows(
        'INSERT INTO organizations (id, name, configured) VALUES ($1, $2, 1) ON CONFLICT (id) DO NOTHING',
        [job.organization.id, job.organization.name],
      )
      const [row] = await sql.rows<{ epoch: number }>(
        `
          INSERT INTO sync_jobs (organization_id, collection, configured, owner, epoch, verifying)
          VALUES ($1, $2, 1, $3, ${NEW_EPOCH}, $4)
          ON CONFLICT (organization_id, collection) DO UPDATE
          SET owner = excluded.owner, epoch = excluded.epoch, verifying = excluded.verifying,
            retry_since = NULL, retry_until = NULL, retry_error = NULL
          RETURNING epoch
        `,
        [...ofJob(job), leases.name, isVerify ? 1 : 0],
      )
      return leaseOf(sql, job, row?.epoch ?? 0)
    })
  }

  return {
    async acquire(job, isVerify = false) {
      if (!(await leases.lock(...ofJob(job)))) return readOwner(server, job)
      try {
        return { lease: await takeOver(job, isVerify) }
      } catch (error) {
        await leases.unlock(...ofJob(job))
        throw error
      }
    },
    async release({ job, ...lease }) {
      try {
        await server.rows(`UPDATE sync_jobs SET owner = NULL, verifying = 0 WHERE ${OF_JOB} AND epoch = $3`, [
          ...ofJob(job),
          epochOf(lease),
        ])
      } finally {
        // Nobody could read a list whose lock stays while this process lives.
        await leases.unlock(...ofJob(job))
      }
    },

    openWalks: (job) => openWalks(server, job),
    beginRun: (lease, { resume, abandon, ...begin }) =>
      owned(lease, async (sql) => {
        const at = time()
        for (const id of abandon) await abandonWalk(sql, id, at)
        const { job } = lease
        const walk =
          resume === null
            ? await beginWalk(sql, job, begin, at)
            : await resumeWalk(sql, job, resume, begin.first, at)
        return { walk, runId: await beginRun(sql, job, { ...begin, walk, within: null }, at) }
      }),
    async readLedger(walkId, after) {
      const answers = await server.rows<LedgerRow>(selectAnswers('$1', '$2'), [walkId, after])
      return answers.map(entryOf)
    },

    lookup: (job, items) => lookUp(server, collections, job, items),
    async commit(lease, { answer, walk, next, at, run }) {
      if (!answer) {
        await owned(lease, (sql) => saveCheckpoint(sql, walk.id, next, at))
        return { newRejects: 0, rowsAdded: lease.rowsAdded, notices: [] }
      }
      const { entry, newToWalk } = answer
      const page = { changes: answer, run, at, ordinal: entry.ordinal, saved: null }
      return commit.page(owner(lease), { ...page, answer: { walk, entry, newToWalk, next } })
    },
    beginRefresh: (lease, saved, within) =>
      owned(lease, async (sql) => {
        await saveRefresh(sql, lease.job, saved)
        return beginRun(sql, lease.job, { walk: null, trigger: 'refresh', brief: true, within }, time())
      }),
    async commitRefresh(lease, { run, at, saved, ...changes }) {
      const name = nameOf(lease.job)
      const last = refreshPages.get(name)
      const ordinal = (last?.run === run.id ? last.pages : 0) + 1
      const written = await commit.page(owner(lease), { changes, run, at, ordinal, answer: null, saved })
      refreshPages.set(name, { run: run.id, pages: ordinal })
      return written
    },
    saveRefresh: (lease, saved) => owned(lease, (sql) => saveRefresh(sql, lease.job, saved)),
    refreshes: () => allRefreshes(server),

    async findMissing(lease, rule) {
      const { job } = lease
      const before = await countMissing(server, job)
      // As many items were seen as there are rows: none is missing.
      const isNone =
        before.live === rule.keyed &&
        !before.missing &&
        !(await isOverlapped(server, job, rule.walkId)) &&
        !(await isRefreshed(server, rule.walkId))
      if (!isNone)
        await collections.retrying(job, ({ shape }) =>
          owned(lease, (sql) => noteMissing(sql, shape, { job, rule, at: time() })),
        )
      const { removable, held, live } = await countMissing(server, job)
      return { removable, held, live }
    },
    closeWalk: (lease, { walk, run, outcome, removals, refresh }) => {
      const { job } = lease
      const at = time()
      const close = (remove: (sql: Sql) => Promise<void>) =>
        owned(lease, async (sql) => {
          if (outcome === null) await abandonWalk(sql, walk.id, at)
          else {
            await remove(sql)
            if (walk.kind === 'full' && outcome.untrusted === null) await confirmScope(sql, job, walk.id)
            await completeWalk(sql, { walkId: walk.id, runId: run.id }, outcome, at)
            if (walk.kind === 'full') await recordColumns(sql, ofJob(job), walk.id)
            if (refresh) await saveRefresh(sql, job, refresh)
          }
          return { heldBack: await heldRemovals(sql, job) }
        })
      if (removals === 'none') return close(async () => {})
      if (removals !== 'remove') {
        const why = removals.hold === 'earlier' ? null : removals.hold
        return close((sql) => holdMissing(sql, job, why))
      }
      return collections.retrying(job, ({ shape }) =>
        close((sql) => removeMissing(sql, shape, job, run.id, at)),
      )
    },
    noteRetry: async ({ job, ...lease }, retry) => {
      await server.rows(
        `UPDATE sync_jobs SET retry_since = $4, retry_until = $5, retry_error = $6 WHERE ${OF_JOB} AND epoch = $3`,
        [
          ...ofJob(job),
          epochOf(lease),
          ...(retry ? [timeOf(retry.since), timeOf(retry.until), storable(retry.error)] : [null, null, null]),
        ],
      )
    },
    finishRun: (_lease, run, outcome) => server.transaction((sql) => finishRun(sql, run, outcome, time())),

    async prune(job) {
      const { history } = job.collection
      const versionsBefore = typeof history === 'number' ? ago(history) : null
      await pruneJob(server, job, pruneTimes(ago, keepRuns), versionsBefore, signal)
    },
    liveKeys: (job, from) => readLiveKeys(server, collections, job, from),
  }
}

async function leaseOf(sql: Sql, job: Job, epoch: number): Promise<OwnLease> {
  const { name, key } = job.collection
  const refusal = await assertPossible(sql, { name, key }).then(() => null, refusalOf)
  const [trace] = await sql.rows<{ found: boolean }>(
    `
      SELECT
        EXISTS (SELECT 1 FROM sync_walks WHERE ${OF_JOB})
        OR EXISTS (SELECT 1 FROM sync_rejects WHERE ${OF_JOB})
        OR EXISTS (SELECT 1 FROM sync_jobs WHERE ${OF_JOB} AND rows > 0) AS found
    `,
    ofJob(job),
  )
  const isNeverSynced = refusal === null && trace?.found !== true
  return {
    job,
    refusal,
    lastWalk: await lastOutcome(sql, job),
    isNeverSynced,
    ...(await refreshOf(sql, job)),
    epoch,
  }
}

function owner({ job, ...lease }: Lease): Pick<OwnLease, 'job' | 'epoch'> {
  return { job, epoch: epochOf(lease) }
}

/** Only leases of `acquire` have one. */
function epochOf(lease: Omit<Lease, 'job'>): number {
  return (lease as OwnLease).epoch
}

function refusalOf(error: unknown): JobError {
  if (error instanceof JobError) return error
  throw error
}
