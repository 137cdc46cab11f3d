import { InterruptedError } from '../../errors.ts'
import { tableName } from '../columns/catalog.ts'
import { asOwner, type JobNames, OF_JOB } from './jobs.ts'
import type { Leases } from './leases.ts'
import { all, type Dialect, deleteSome, one, quoted, type Rule, type Runner, run, timeOf } from './sql.ts'
import { knownShape } from './tables.ts'

// What `forget` deletes of a job, and of an organization.

/** How much was deleted of a job. `pages`: lines of the page ledger. */
export type Holdings = Record<'rows' | 'versions' | 'rejects' | 'walks' | 'pages' | 'runs', number>

const OF_WALKS = `walk_id IN (SELECT id FROM sync_walks WHERE ${OF_JOB})`

/** Makes a job look as if it was never read, before the rest is deleted. */
function* markForgotten(job: JobNames, at: string): Rule<Holdings> {
  yield* run(
    `UPDATE sync_walks SET status = 'abandoned', coverage = NULL, finished_at = coalesce(finished_at, :at) WHERE ${OF_JOB}`,
    { ...job, at },
  )
  yield* run(
    `
      UPDATE sync_jobs
      SET held_why = NULL, scope_path = NULL, scope_filters = NULL, rows_added = 0,
        refresh = NULL, fresh_as_of = NULL, newest = NULL,
        failing_since = NULL, failing_by = NULL, failing_code = NULL, failing_message = NULL
      WHERE ${OF_JOB}
    `,
    job,
  )
  const runs = yield* run(`DELETE FROM sync_runs WHERE ${OF_JOB}`, job)
  return { rows: 0, versions: 0, rejects: 0, walks: 0, pages: 0, runs }
}

/** Deletes up to `limit` rows of a job. Returns how many. */
function* forgetRows(dialect: Dialect, job: JobNames, limit: number): Rule<number> {
  const shape = yield* knownShape(dialect, job.collection)
  if (!shape) return 0
  const typed = quoted(job.collection)
  const keys = ['_organization_id', ...shape.keyColumns].map(quoted).join(', ')
  // The same rows of both tables.
  const chosen = `"_row" IN (SELECT "_row" FROM ${typed} WHERE "_organization_id" = :organization ORDER BY ${keys} LIMIT :limit)`
  const values = { ...job, limit }
  yield* run(`DELETE FROM ${quoted(tableName(job.collection, 'json'))} WHERE ${chosen}`, values)
  const rows = yield* run(`DELETE FROM ${typed} WHERE ${chosen}`, values)
  yield* run(`UPDATE sync_jobs SET rows = rows - :rows WHERE ${OF_JOB} AND rows >= :rows`, { ...job, rows })
  return rows
}

function* forgetVersions(dialect: Dialect, job: JobNames, limit: number): Rule<number> {
  const shape = yield* knownShape(dialect, job.collection)
  if (!shape) return 0
  const key = ['_organization_id', ...shape.keyColumns, '_ended_seq']
  const where = '"_organization_id" = :organization'
  return yield* deleteSome(tableName(job.collection, 'history'), key, where, { ...job, limit })
}

type ForgetSome = (dialect: Dialect, job: JobNames, limit: number) => Rule<number>

function ofTable(table: string, key: readonly string[], where: string): ForgetSome {
  return (_dialect, job, limit) => deleteSome(table, key, where, { ...job, limit })
}

/** What is deleted in batches, in this order, and which number counts it. The walks, since their ids are used again, go after all that refers to them. */
const IN_BATCHES: readonly [keyof Holdings | null, ForgetSome][] = [
  [null, ofTable('sync_missing', ['organization_id', 'collection', 'key'], OF_JOB)],
  [null, ofTable('sync_refreshed', ['walk_id', 'key'], OF_WALKS)],
  ['pages', ofTable('sync_pages', ['walk_id', 'ordinal'], OF_WALKS)],
  ['walks', ofTable('sync_walks', ['id'], OF_JOB)],
  ['rejects', ofTable('sync_rejects', ['organization_id', 'collection', 'fingerprint'], OF_JOB)],
  ['rows', forgetRows],
  ['versions', forgetVersions],
]

/** Deletes an organization once it has no jobs, and the hold of its token unless another organization has that, too. */
function* forgetOrganization(id: string): Rule<void> {
  const job = yield* one('SELECT 1 FROM sync_jobs WHERE organization_id = :id', { id })
  if (job !== null) return
  yield* run(
    `
      DELETE FROM sync_refused_tokens
      WHERE fingerprint IN (SELECT last_fingerprint FROM organizations WHERE id = :id)
        AND fingerprint NOT IN (SELECT last_fingerprint FROM organizations WHERE id <> :id AND last_fingerprint IS NOT NULL)
    `,
    { id },
  )
  yield* run('DELETE FROM organizations WHERE id = :id', { id })
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

/** What forgetting needs of a database. */
export interface ForgettingWork extends Runner {
  leases: Pick<Leases, 'take' | 'release'>
  /** Rows of one transaction. */
  batchRows: number
}

/** Deletes what the mirror holds of jobs and organizations. */
export type Forgetting = ReturnType<typeof createForgetting>

export function createForgetting({ dialect, leases, now, writing, inBatches, batchRows }: ForgettingWork) {
  return {
    /**
     * Forgets a job, in batches, and returns what is gone; null: another process works on it. At once the list looks as if it was never read, so that
     * after a kill the same command does the rest. Throws InterruptedError after the signal to stop, and JobError (`BUSY`) once another process has
     * taken the job: what that one writes stays. `isConfigured`: the job's row stays, since a sync will need it.
     */
    async job(job: JobNames, isConfigured: boolean): Promise<Holdings | null> {
      const taken = await leases.take(job, false)
      if (!taken) return null
      const owner = { job, name: `${job.organization} ${job.collection}`, epoch: taken.epoch }
      const owned = <T>(begin: () => Rule<T>) => writing(() => asOwner(dialect, owner, begin))
      try {
        const gone = await owned(() => markForgotten(job, timeOf(now())))
        for (const [counts, forgetSome] of IN_BATCHES) {
          const isDone = await inBatches(async () => {
            const rows = await owned(() => forgetSome(dialect, job, batchRows))
            if (counts) gone[counts] += rows
            return rows < batchRows
          })
          if (!isDone)
            throw new InterruptedError('stopped before everything was forgotten; the same command continues')
        }
        const end = isConfigured ? 'UPDATE sync_jobs SET rows = 0' : 'DELETE FROM sync_jobs'
        await owned(() => run(`${end} WHERE ${OF_JOB}`, job))
        return gone
      } finally {
        await leases.release(owner)
      }
    },
    /** Never call it for a configured organization, whose refused token would be sent again. */
    organization: (id: string) => writing(() => forgetOrganization(id)),
  }
}
