import { InterruptedError } from '../../errors.ts'
import { keyColumnNames, splitKey, tableName } from '../columns/catalog.ts'
import { knownKey } from './catalogs.ts'
import { asOwner, type JobNames, OF_JOB, type OwnJob } from './jobs.ts'
import type { Leases } from './leases.ts'
import { all, type Dialect, one, quoted, type Rule, type Runner, run, timeOf } from './sql.ts'

// What `forget` deletes of a job, and of an organization.

/** How much the mirror holds of a job. `pages`: lines of the page ledger. */
export interface Holdings {
  rows: number
  versions: number
  rejects: number
  walks: number
  pages: number
  runs: number
}

/** A set of a job's rows. */
interface RowSet {
  /** The number of `Holdings` that counts them; null: none. */
  counts: keyof Holdings | null
  table: string
  where: string
  /** The columns that identify a row, and the order of deletion. */
  key: string
  order: string
  /** A table whose rows have the same numbers, and go first. */
  beside: string | null
}

function lines(counts: keyof Holdings | null, table: string, key: string, where = OF_JOB): RowSet {
  return { counts, table, where, key, order: key, beside: null }
}

/** What is deleted of a job, in this order: a walk after everything that refers to it, since its id is used again. */
function* rowSetsOf({ rowId, limits }: Dialect, { collection }: JobNames): Rule<RowSet[]> {
  const known = yield* knownKey(collection)
  const keys = known ? keyColumnNames(splitKey(known), limits).map(quoted).join(', ') : ''
  const where = '"_organization_id" = :organization'
  const [history, beside] = [tableName(collection, 'history'), tableName(collection, 'json')].map(quoted)
  const ofWalks = `walk_id IN (SELECT id FROM sync_walks WHERE ${OF_JOB})`
  const ofCollection: RowSet[] = [
    { counts: 'rows', table: quoted(collection), where, key: '"_row"', order: keys, beside: beside ?? null },
    { ...lines('versions', history ?? '', rowId, where), order: `${keys}, ${rowId}` },
  ]
  return [
    lines(null, 'sync_missing', 'organization_id, collection, key'),
    lines(null, 'sync_refreshed', rowId, ofWalks),
    lines('pages', 'sync_pages', rowId, ofWalks),
    lines('walks', 'sync_walks', 'id'),
    lines('runs', 'sync_runs', 'id'),
    lines('rejects', 'sync_rejects', 'organization_id, collection, fingerprint'),
    ...(known ? ofCollection : []),
  ]
}

/** Counts what the mirror holds of a job. */
export function* holdingsOf(dialect: Dialect, job: JobNames): Rule<Holdings> {
  const holdings: Holdings = { rows: 0, versions: 0, rejects: 0, walks: 0, pages: 0, runs: 0 }
  for (const { counts, table, where } of yield* rowSetsOf(dialect, job)) {
    if (!counts) continue
    const found = yield* one<{ rows: number }>(`SELECT count(*) AS rows FROM ${table} WHERE ${where}`, job)
    holdings[counts] = found?.rows ?? 0
  }
  return holdings
}

/**
 * Makes a job look as if it was never read, before its rows are deleted: a complete walk would say how fresh
 * the rows are, and an open one would count its seen items as stored.
 */
function* markForgotten(job: JobNames, at: string): Rule<void> {
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
      SET removals_held = 0, held_why = NULL, scope_path = NULL, scope_filters = NULL, scope_mixed = 0, rows_added = 0,
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
  for (const { counts, table, where, key, order, beside } of yield* rowSetsOf(dialect, job)) {
    const chosen = `(${key}) IN (SELECT ${key} FROM ${table} WHERE ${where} ORDER BY ${order} LIMIT :left)`
    if (beside) yield* run(`DELETE FROM ${beside} WHERE ${chosen}`, { ...job, left })
    const gone = yield* run(`DELETE FROM ${table} WHERE ${chosen}`, { ...job, left })
    left -= gone
    if (counts === 'rows' && gone > 0)
      yield* run(
        `UPDATE sync_jobs SET rows = CASE WHEN rows > :gone THEN rows - :gone ELSE 0 END WHERE ${OF_JOB}`,
        { ...job, gone },
      )
    if (left <= 0) return false
  }
  return true
}

/** Ends a job whose rows are deleted. `isConfigured`: its row stays, since a sync will need it. */
function endJob(job: JobNames, isConfigured: boolean): Rule<number> {
  return run(
    `${isConfigured ? 'UPDATE sync_jobs SET rows = 0' : 'DELETE FROM sync_jobs'} WHERE ${OF_JOB}`,
    job,
  )
}

/**
 * Deletes an unconfigured organization once it has no jobs, with its hold: nothing sends its token, and organizations with
 * the same token have holds of their own. Never call it for a configured one, whose refused token would be sent again.
 */
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
  return {
    /** Forgets a job, and returns what is gone; null: another process works on it. See `forgetJob`. */
    async job(job: JobNames, isConfigured: boolean): Promise<Holdings | null> {
      const taken = await work.leases.take(job, false)
      if (!taken) return null
      const own = { job, name: `${job.organization} ${job.collection}`, epoch: taken.epoch }
      try {
        return await forgetJob(work, own, isConfigured)
      } finally {
        await work.leases.release(own)
      }
    },
    /** See `forgetOrganization`. */
    organization: (id: string) => work.writing(() => forgetOrganization(id)),
  }
}

/**
 * Forgets a job that was taken, in batches. At once the list looks as if it was never read, so that after a kill the same command does the
 * rest. Throws InterruptedError after the signal to stop, and JobError (`BUSY`) once another process has taken the job: what that one writes
 * stays.
 * @param isConfigured Keeps the row of the job, as of one without rows, since a sync will need it.
 */
async function forgetJob(
  { dialect, now, writing, inBatches, batchRows }: ForgettingWork,
  owner: OwnJob,
  isConfigured: boolean,
): Promise<Holdings> {
  const { job } = owner
  const owned = <T>(begin: () => Rule<T>) => writing(() => asOwner(dialect, owner, begin))
  const gone = await owned(function* () {
    const holdings = yield* holdingsOf(dialect, job)
    yield* markForgotten(job, timeOf(now()))
    return holdings
  })
  if (!(await inBatches(() => owned(() => deleteHoldings(dialect, job, batchRows)))))
    throw new InterruptedError('stopped before everything was forgotten; the same command continues')
  await owned(() => endJob(job, isConfigured))
  return gone
}
