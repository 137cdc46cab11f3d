import { JobError } from '../../errors.ts'
import type { RefreshState } from '../../sync/refresh/state.ts'
import type { HeldRemovals, Lease, PageRetry, SavedRefresh } from '../../sync/store.ts'
import type { Job } from '../../sync/types.ts'
import { jobName } from '../../text.ts'
import { assertKnownVersion } from '../schema.ts'
import { all, type Dialect, one, type Rule, run, timeOf } from './sql.ts'

// `sync_jobs`: one row for each list of an organization.

/** A job by its names. */
export type JobNames = Readonly<Record<'organization' | 'collection', string>>

/** The condition for the rows of a job, with the parameters of `namesOf`. */
export const OF_JOB = 'organization_id = :organization::text AND collection = :collection::text'

export function namesOf({ organization, collection }: Job): JobNames {
  return { organization: organization.id, collection: collection.name }
}

/** A job that a process has taken. */
export interface OwnJob {
  job: JobNames
  /** For messages. */
  name: string
  /** What the job's row says as long as no other process has taken it. */
  epoch: number
}

export function ownJobOf({ job, epoch }: Lease): OwnJob {
  return { job: namesOf(job), name: jobName(job), epoch }
}

/** A job's row, as it is while its owner writes. */
export interface LockedJob {
  /** Live rows. */
  rows: number
  /** Rows that the job has ever added. */
  rowsAdded: number
  /** That of the collection's tables; null without any. */
  tables: number | null
  /** On a server: of the schema. */
  schema: string | null
}

/**
 * Locks the job's row, and runs `begin`. Throws JobError (`BUSY`) if another process has the job by now, and MirrorLostError if a newer version of
 * the program has changed the mirror. `begin` sees everything that other processes wrote of the job, since they lock the same row.
 * @param changes Of the collection's tables: `keep` them as they are, or `change` them.
 */
export function* asOwner<T>(
  { lock }: Dialect,
  { job, name, epoch }: OwnJob,
  begin: (row: LockedJob) => Rule<T>,
  changes: 'keep' | 'change' | null = null,
): Rule<T> {
  const row = yield* one<LockedJob>(
    `
      SELECT
        rows, rows_added AS "rowsAdded",
        (SELECT version FROM sync_collections WHERE name = :collection::text ${changes ? lock(changes) : ''}) AS tables,
        (SELECT value FROM sync_settings WHERE name = 'version') AS schema
      FROM sync_jobs
      WHERE ${OF_JOB} AND epoch = :epoch ${lock('change')}
    `,
    { ...job, epoch },
  )
  if (row?.schema != null) assertKnownVersion(Number(row.schema), 'the schema')
  if (row) return yield* begin(row)
  throw new JobError(
    'BUSY',
    `${name}: another process has taken the job over while this one was cut off or stood still; this one has written nothing since`,
  )
}

export function heldRemovals(job: Job): Rule<HeldRemovals | null> {
  return one(
    `
      SELECT
        count(*) AS rows,
        (SELECT rows FROM sync_jobs WHERE ${OF_JOB}) AS live,
        coalesce(sum(CASE reason WHEN 'out_of_scope' THEN 1 ELSE 0 END), 0) AS "outOfScope"
      FROM sync_missing
      WHERE ${OF_JOB} AND state = 'held'
      HAVING count(*) > 0
    `,
    namesOf(job),
  )
}

export function noteRetry(job: Job, retry: PageRetry | null): Rule<number> {
  return run(
    `UPDATE sync_jobs SET retry_since = :since, retry_until = :until, retry_error = :error WHERE ${OF_JOB}`,
    {
      ...namesOf(job),
      since: retry && timeOf(retry.since),
      until: retry && timeOf(retry.until),
      error: retry?.error ?? null,
    },
  )
}

/** Saves what the next refresh starts from. */
export function saveRefresh(job: Job, state: RefreshState): Rule<number> {
  return run(
    `UPDATE sync_jobs SET refresh = :refresh, fresh_as_of = :freshAsOf, newest = :newest WHERE ${OF_JOB}`,
    {
      ...namesOf(job),
      refresh: JSON.stringify(state),
      freshAsOf: timeOf(state.freshAsOf),
      newest: state.newest,
    },
  )
}

export function* allRefreshes(): Rule<SavedRefresh[]> {
  const rows = yield* all<{ organizationId: string; collection: string; refresh: string }>(`
    SELECT organization_id AS "organizationId", collection, refresh
    FROM sync_jobs
    WHERE configured = 1 AND refresh IS NOT NULL
  `)
  return rows.map(({ refresh, ...job }) => ({ ...job, state: JSON.parse(refresh) }))
}
