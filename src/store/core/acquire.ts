import type { Acquired, Lease } from '../../sync/store.ts'
import type { Coverage, Job, Trigger } from '../../sync/types.ts'
import { JOIN_COMPLETE, OF_OUTER_JOB, THIS_JOB } from '../schema.ts'
import { namesOf } from './jobs.ts'
import { assertAddressKept } from './settings.ts'
import { type Dialect, msOf, one, type Rule, run, type StoredTime } from './sql.ts'
import { refusalOf } from './tables.ts'

// What a process that takes a job learns of it.

const LEASE = `
  SELECT
    job.refresh, job.rows_added AS "rowsAdded", job.refreshed_at AS "refreshedAt", complete.coverage,
    (SELECT max(updated_at) FROM sync_walks WHERE ${OF_OUTER_JOB}) AS "lastPageAt"
  FROM sync_jobs AS job
  ${JOIN_COMPLETE}
  WHERE ${THIS_JOB}
`

/** What is known of a job that this process has taken. Throws where the mirror holds the lists of another address than `baseUrl`. */
export function* leaseOf(dialect: Dialect, job: Job, baseUrl: string): Rule<Omit<Lease, 'epoch'>> {
  yield* assertAddressKept(baseUrl)
  // `forget` may have deleted the organization since this process registered it.
  yield* run(
    'INSERT INTO organizations (id, name, configured) VALUES (:id, :name, 1) ON CONFLICT (id) DO NOTHING',
    { id: job.organization.id, name: job.organization.name },
  )
  const refusal = yield* refusalOf(dialect, job.collection)
  const row = yield* one<
    Record<'refreshedAt' | 'lastPageAt', StoredTime | null> &
      Record<'rowsAdded', number> & {
        refresh: string | null
        coverage: Coverage | null
      }
  >(LEASE, namesOf(job))
  if (!row) throw new Error('the job that was taken is not there')
  return {
    job,
    refusal,
    lastCoverage: row.coverage,
    refresh: row.refresh === null ? null : JSON.parse(row.refresh),
    rowsAdded: row.rowsAdded,
    // Refreshes tell pages apart by their times.
    lastPageAt: Math.max(msOf(row.lastPageAt ?? 0), msOf(row.refreshedAt ?? 0) + 1),
  }
}

/** A process that compares a list has no run: a run that is open then was left by one that died. A refresh may run within a walk. */
const HELD = `
  SELECT
    owner,
    verifying AS "isVerify",
    CASE WHEN EXISTS (SELECT 1 FROM sync_workers WHERE name = owner AND configuration IS NOT NULL) THEN 1 ELSE 0 END AS "isDaemon",
    (
      SELECT trigger
      FROM sync_runs
      WHERE ${OF_OUTER_JOB} AND status = 'running' AND job.verifying = 0
      ORDER BY walk_id IS NULL, id DESC
      LIMIT 1
    ) AS trigger
  FROM sync_jobs AS job
  WHERE ${THIS_JOB}
`

/** Which process has a job that cannot be taken, and what it is doing. */
export function* heldByOther(job: Job): Rule<Extract<Acquired, { heldBy: string }>> {
  const row = yield* one<
    { owner: string | null; trigger: Trigger | null } & Record<'isVerify' | 'isDaemon', number>
  >(HELD, namesOf(job))
  if (!row || row.owner === null) return { heldBy: 'another process', work: null }
  const { owner, trigger, isDaemon, isVerify } = row
  return { heldBy: owner, work: { isDaemon: isDaemon === 1, isVerify: isVerify === 1, trigger } }
}
