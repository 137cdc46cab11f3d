import { InterruptedError } from '../../errors.ts'
import { identityOf, tableName } from '../columns/catalog.ts'
import { asOwner, type JobNames, OF_JOB } from './jobs.ts'
import type { Leases } from './leases.ts'
import { deleteRows } from './rows.ts'
import {
  all,
  BATCH_ROWS,
  deleteBatch,
  type Dialect,
  one,
  quoted,
  type Rule,
  run,
  type Runner,
  timeOf,
} from './sql.ts'
import { knownCatalog } from './tables.ts'
import { ofWalks } from './walks.ts'

// What `forget` deletes of a job, and of an organization.

/** Makes a job look as if it was never read, before the rest is deleted. */
function* markForgotten(job: JobNames, at: string): Rule<void> {
  yield* run(
    `UPDATE sync_walks SET status = 'abandoned', coverage = NULL, finished_at = coalesce(finished_at, :at) WHERE ${OF_JOB}`,
    { ...job, at },
  )
  yield* run(
    `
      UPDATE sync_jobs
      SET rows_added = 0,
        refresh = NULL, fresh_as_of = NULL, newest = NULL,
        failing_since = NULL, failing_by = NULL, failing_code = NULL, failing_message = NULL
      WHERE ${OF_JOB}
    `,
    job,
  )
}

/** Deletes a batch of what a job has. Returns how many rows. */
type ForgetSome = (dialect: Dialect, job: JobNames) => Rule<number>

const OF_ORGANIZATION = '"_organization_id" = :organization'

function* forgetRows(dialect: Dialect, job: JobNames): Rule<number> {
  if (!(yield* knownCatalog(dialect, job.collection))) return 0
  const rows = yield* all<{ row: number }>(
    `SELECT "_row" AS "row" FROM ${quoted(job.collection)} WHERE ${OF_ORGANIZATION} LIMIT ${BATCH_ROWS}`,
    job,
  )
  const numbers = rows.map(({ row }) => row)
  return yield* deleteRows(dialect, job, numbers)
}

function* forgetVersions(dialect: Dialect, job: JobNames): Rule<number> {
  const catalog = yield* knownCatalog(dialect, job.collection)
  if (!catalog) return 0
  const key = [...identityOf(catalog.keys), '_ended_seq']
  return yield* deleteBatch(tableName(job.collection, 'history'), key, OF_ORGANIZATION, job)
}

function ofTable(table: string, key: readonly string[], where: string): ForgetSome {
  return (_dialect, job) => deleteBatch(table, key, where, job)
}

/** What is deleted in batches, in this order: walks after what is found by them. */
const IN_BATCHES: readonly ForgetSome[] = [
  ofTable('sync_runs', ['id'], OF_JOB),
  ofTable('sync_missing', ['organization_id', 'collection', 'key'], OF_JOB),
  ofTable('sync_refreshed', ['walk_id', 'key'], ofWalks()),
  ofTable('sync_pages', ['walk_id', 'ordinal'], ofWalks()),
  ofTable('sync_walks', ['id'], OF_JOB),
  ofTable('sync_rejects', ['organization_id', 'collection', '_fingerprint'], OF_JOB),
  forgetRows,
  forgetVersions,
]

/** Deletes an organization once it has no jobs. The hold of its token stays without its name, since another one may be configured with it. */
function* forgetOrganization(id: string): Rule<void> {
  const job = yield* one('SELECT 1 FROM sync_jobs WHERE organization_id = :id', { id })
  if (job !== null) return
  const found = yield* one<{ name: string }>('SELECT name FROM organizations WHERE id = :id', { id })
  yield* run('UPDATE sync_refused_tokens SET reason = replace(reason, :named::text, :unnamed::text)', {
    named: ` of organization ${found?.name} was refused`,
    unnamed: ' was refused',
  })
  yield* run('DELETE FROM sync_organizations WHERE id = :id', { id })
  yield* run('DELETE FROM sync_gates WHERE scope = :id', { id })
  yield* run('DELETE FROM sync_shares WHERE scope = :id', { id })
}

/** The collections of an organization that the mirror has jobs of. */
export function* collectionsOf(organization: string): Rule<string[]> {
  const rows = yield* all<{ collection: string }>(
    'SELECT collection FROM sync_jobs WHERE organization_id = :organization ORDER BY collection',
    { organization },
  )
  return rows.map(({ collection }) => collection)
}

export type Forgetting = ReturnType<typeof createForgetting>

/** Deletes what the mirror holds of jobs and organizations. */
export function createForgetting(
  { dialect, now, writing, inBatches, cutLog }: Runner,
  leases: Pick<Leases, 'take' | 'release'>,
) {
  return {
    /**
     * Forgets a job, in batches, and returns how many rows are gone; null: another process works on it. At once the list looks as if it was never read, but for its runs, so that
     * after a kill the same command does the rest. Throws InterruptedError after the signal to stop, and JobError (`BUSY`) once another process has
     * taken the job: what that one writes stays. `isConfigured`: the job's row stays, since a sync will need it.
     */
    async job(job: JobNames, isConfigured: boolean): Promise<number | null> {
      const taken = await leases.take(job, false)
      if (!taken) return null
      const owner = { job, name: `${job.organization} ${job.collection}`, epoch: taken.epoch }
      const owned = <T>(begin: () => Rule<T>) => writing(() => asOwner(dialect, owner, begin))
      try {
        await owned(() => markForgotten(job, timeOf(now())))
        let gone = 0
        for (const forgetSome of IN_BATCHES) {
          const isDone = await inBatches(async () => {
            const deleted = await owned(() => forgetSome(dialect, job))
            if (forgetSome === forgetRows) gone += deleted
            return deleted < BATCH_ROWS
          })
          if (!isDone)
            throw new InterruptedError('stopped before everything was forgotten; the same command continues')
        }
        const end = isConfigured ? 'UPDATE sync_jobs SET rows = 0' : 'DELETE FROM sync_jobs'
        await owned(() => run(`${end} WHERE ${OF_JOB}`, job))
        await cutLog?.()
        return gone
      } finally {
        await leases.release(owner)
      }
    },
    organization: (id: string) => writing(() => forgetOrganization(id)),
  }
}
