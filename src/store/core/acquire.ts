import type { Lease } from '../../sync/store.ts'
import type { Coverage, Job } from '../../sync/types.ts'
import { JOIN_COMPLETE, OF_OUTER_JOB, THIS_JOB } from '../schema.ts'
import { namesOf, OF_JOB } from './jobs.ts'
import { assertAddressKept } from './settings.ts'
import { type Dialect, msOf, one, only, type Rule, run } from './sql.ts'
import { ensureTables } from './tables.ts'

// What a process that takes a job learns of it.

const LEASE = `
  SELECT
    job.refresh, job.rows_added AS "rowsAdded", job.refreshed_at AS "refreshedAt", complete.coverage,
    (SELECT max(updated_at) FROM sync_walks WHERE ${OF_OUTER_JOB}) AS "lastPageAt"
  FROM sync_jobs AS job
  ${JOIN_COMPLETE}
  WHERE ${THIS_JOB}
`

/** What is known of a job that this process has taken, whose tables are made if they are missing. Throws where the mirror holds the lists of another address than `baseUrl`. `at`: ISO 8601. */
export function* leaseOf(
  dialect: Dialect,
  job: Job,
  baseUrl: string,
  at: string,
): Rule<Omit<Lease, 'epoch'>> {
  yield* assertAddressKept(baseUrl)
  // `forget` may have deleted the organization since this process registered it.
  yield* run(
    'INSERT INTO sync_organizations (id, name, configured) VALUES (:id, :name, 1) ON CONFLICT (id) DO NOTHING',
    { id: job.organization.id, name: job.organization.name },
  )
  const refusal = yield* ensureTables(dialect, job.collection, at)
  const row = yield* only<
    Record<'refreshedAt' | 'lastPageAt', string | null> &
      Record<'rowsAdded', number> & {
        refresh: string | null
        coverage: Coverage | null
      }
  >(LEASE, namesOf(job))
  return {
    job,
    refusal,
    lastCoverage: row.coverage,
    refresh: row.refresh === null ? null : JSON.parse(row.refresh),
    rowsAdded: row.rowsAdded,
    // Refreshes tell pages apart by their times.
    lastPageAt: Math.max(msOrZero(row.lastPageAt), msOrZero(row.refreshedAt) + 1),
  }
}

function msOrZero(time: string | null): number {
  return time === null ? 0 : msOf(time)
}

/** The name of the process that has a job which cannot be taken. */
export function* ownerOf(job: Job): Rule<string> {
  const row = yield* one<{ owner: string | null }>(
    `SELECT owner FROM sync_jobs WHERE ${OF_JOB}`,
    namesOf(job),
  )
  return row?.owner ?? 'another process'
}
