import { InterruptedError } from '../../errors.ts'
import { keyColumnNames, splitKey, tableName } from '../columns/catalog.ts'
import { asOwner, type JobNames, OF_JOB } from './jobs.ts'
import type { Leases } from './leases.ts'
import { all, type Dialect, one, quoted, type Rule, type Runner, run, timeOf } from './sql.ts'
import { knownKey } from './tables.ts'

// What `forget` deletes of a job, and of an organization.

/** How much the mirror holds of a job. `pages`: lines of the page ledger. */
export type Holdings = Record<'rows' | 'versions' | 'rejects' | 'walks' | 'pages' | 'runs', number>

/** A set of a job's rows. */
interface RowSet {
  /** The number of `Holdings` that counts them; null: none. */
  counts: keyof Holdings | null
  table: string
  where: string
  /** The columns that identify a row, in an index. */
  key: string
}

const OF_WALKS = `walk_id IN (SELECT id FROM sync_walks WHERE ${OF_JOB})`

/** What is deleted of a job, in this order: a walk after everything that refers to it, since its id is used again. */
const OF_EVERY_JOB: readonly RowSet[] = [
  { counts: null, table: 'sync_missing', where: OF_JOB, key: 'organization_id, collection, key' },
  { counts: 'pages', table: 'sync_pages', where: OF_WALKS, key: 'walk_id, ordinal' },
  { counts: 'walks', table: 'sync_walks', where: OF_JOB, key: 'id' },
  { counts: 'runs', table: 'sync_runs', where: OF_JOB, key: 'id' },
  {
    counts: 'rejects',
    table: 'sync_rejects',
    where: OF_JOB,
    key: 'organization_id, collection, fingerprint',
  },
]

function* rowSetsOf({ limits }: Dialect, { collection }: JobNames): Rule<readonly RowSet[]> {
  const known = yield* knownKey(collection)
  if (!known) return OF_EVERY_JOB
  const keys = ['_organization_id', ...keyColumnNames(splitKey(known), limits)].map(quoted).join(', ')
  const where = '"_organization_id" = :organization'
  const history = quoted(tableName(collection, 'history'))
  return [
    ...OF_EVERY_JOB,
    { counts: 'rows', table: quoted(collection), where, key: keys },
    { counts: 'versions', table: history, where, key: `${keys}, "_ended_seq"` },
  ]
}

/** Counts what the mirror holds of a job. */
function* holdingsOf(dialect: Dialect, job: JobNames): Rule<Holdings> {
  const holdings: Holdings = { rows: 0, versions: 0, rejects: 0, walks: 0, pages: 0, runs: 0 }
  for (const { counts, table, where } of yield* rowSetsOf(dialect, job)) {
    if (!counts) continue
    const found = yield* one<{ rows: number }>(`SELECT count(*) AS rows FROM ${table} WHERE ${where}`, job)
    holdings[counts] = found?.rows ?? 0
  }
  return holdings
}

/**
 * Makes a job look as if it was never read, before its rows are deleted: a complete walk would say how fresh the rows are, and an open one would
 * count its seen items as stored.
 */
function* markForgotten(job: JobNames, at: string): Rule<void> {
  yield* run(`DELETE FROM sync_refreshed WHERE ${OF_WALKS}`, job)
  yield* run(
    `
      UPDATE sync_walks
      SET status = 'abandoned', coverage = NULL, finished_at = coalesce(finished_at, :at)
      WHERE ${OF_JOB}
    `,
    { ...job, at },
  )
  yield* run(
    `
      UPDATE sync_jobs
      SET removals_held = 0, held_why = NULL, scope_path = NULL, scope_filters = NULL, rows_added = 0,
        refresh = NULL, fresh_as_of = NULL, newest = NULL,
        failing_since = NULL, failing_by = NULL, failing_code = NULL, failing_message = NULL
      WHERE ${OF_JOB}
    `,
    job,
  )
  yield* run(`DELETE FROM sync_runs WHERE ${OF_JOB}`, job)
}

/** Deletes up to `rows` rows of a job, after `markForgotten`. Returns true when none is left. */
function* deleteHoldings(dialect: Dialect, job: JobNames, rows: number): Rule<boolean> {
  let left = rows
  for (const { counts, table, where, key } of yield* rowSetsOf(dialect, job)) {
    const chosen = (column: string) =>
      `SELECT ${column} FROM ${table} WHERE ${where} ORDER BY ${key} LIMIT :left`
    if (counts === 'rows') {
      const json = quoted(tableName(job.collection, 'json'))
      yield* run(`DELETE FROM ${json} WHERE "_row" IN (${chosen('"_row"')})`, { ...job, left })
    }
    const gone = yield* run(`DELETE FROM ${table} WHERE (${key}) IN (${chosen(key)})`, { ...job, left })
    if (counts === 'rows')
      yield* run(`UPDATE sync_jobs SET rows = rows - :gone WHERE ${OF_JOB} AND rows >= :gone`, {
        ...job,
        gone,
      })
    left -= gone
    if (left <= 0) return false
  }
  return true
}

/** Deletes an organization once it has no jobs, with its hold: organizations with the same token have holds of their own. */
function* forgetOrganization(id: string): Rule<void> {
  const job = yield* one('SELECT 1 FROM sync_jobs WHERE organization_id = :id', { id })
  if (job !== null) return
  yield* run('DELETE FROM organizations WHERE id = :id', { id })
  yield* run('DELETE FROM sync_refused_tokens WHERE organization_id = :id', { id })
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

export function createForgetting(work: ForgettingWork) {
  const { dialect, leases, now, writing, inBatches, batchRows } = work

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
        const gone = await owned(function* () {
          const holdings = yield* holdingsOf(dialect, job)
          yield* markForgotten(job, timeOf(now()))
          return holdings
        })
        if (!(await inBatches(() => owned(() => deleteHoldings(dialect, job, batchRows)))))
          throw new InterruptedError('stopped before everything was forgotten; the same command continues')
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
