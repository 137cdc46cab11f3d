import type { BeginRun, Run, RunOutcome, RunRecord, Walk } from '../../../sync/store.ts'
import type { Job } from '../../../sync/types.ts'
import { DIED, failingSql } from '../../failing.ts'
import { LAST_RUNS, type LastRuns } from '../../tokens.ts'
import { type Sql, storable } from '../sql.ts'
import { trafficOf } from './commit-values.ts'
import { OF_JOB, ofJob } from './job.ts'

// `sync_runs`: one row for each attempt at a job.

/** A run that begins. `walk`: null for a refresh. `within`: the run whose walk gives way to it. */
interface Opening extends Pick<BeginRun, 'trigger' | 'brief'> {
  walk: Walk | null
  within: Run | null
}

export async function beginRun(
  sql: Sql,
  job: Job,
  { walk, trigger, brief, within }: Opening,
  at: string,
): Promise<number> {
  await sql.rows(
    `
      UPDATE sync_runs
      SET status = 'interrupted', finished_at = $3, error_code = 'INTERRUPTED', error_message = '${DIED}'
      WHERE ${OF_JOB} AND status = 'running' AND id IS DISTINCT FROM $4
    `,
    [...ofJob(job), at, within?.id ?? null],
  )
  const [row] = await sql.rows<{ id: number }>(
    `
      INSERT INTO sync_runs (walk_id, organization_id, collection, trigger, status, started_at, first_page, brief)
      VALUES ($3, $1, $2, $4, 'running', $5, $6, $7)
      RETURNING id
    `,
    [...ofJob(job), walk?.id ?? null, trigger, at, walk?.checkpoint.nextPage ?? null, brief ? 1 : 0],
  )
  return row?.id ?? 0
}

/** Closes the line of a run that is still its own: a worker that took the job over has closed it already. */
export async function finishRun(
  sql: Sql,
  { id, traffic }: Run,
  { status, errorCode, errorMessage }: RunOutcome,
  at: string,
): Promise<RunRecord> {
  const { requests, retries, rateLimitHits, rateLimitWaitMs } = trafficOf(traffic)
  const message = errorMessage === null ? null : storable(errorMessage)
  const [row] = await sql.rows<RunRecord>(status === 'refused' ? DELETE_RUN : FINISH_RUN, [
    id,
    ...(status === 'refused'
      ? []
      : [status, at, requests, retries, rateLimitHits, rateLimitWaitMs, errorCode, message]),
  ])
  if (status !== 'refused') await sql.rows(NOTE_FAILING, [id])
  return row ?? { pages: 0, rowsSeen: 0, rowsAdded: 0, rowsChanged: 0, rowsRemoved: 0 }
}

const RECORD = `
  pages,
  rows_seen AS "rowsSeen",
  rows_added AS "rowsAdded",
  rows_changed AS "rowsChanged",
  rows_removed AS "rowsRemoved"
`

const DELETE_RUN = `DELETE FROM sync_runs WHERE id = $1 RETURNING ${RECORD}`

const FINISH_RUN = `
  UPDATE sync_runs
  SET
    status = CASE WHEN status = 'running' THEN $2 ELSE status END,
    finished_at = coalesce(finished_at, $3),
    requests = $4,
    retries = $5,
    rate_limit_hits = $6,
    rate_limit_wait_ms = $7,
    error_code = coalesce(error_code, $8),
    error_message = coalesce(error_message, $9),
    brief = CASE WHEN $2 = 'succeeded' THEN brief ELSE 0 END
  WHERE id = $1
  RETURNING ${RECORD}
`

const NOTE_FAILING = failingSql('$1')

interface JobRuns extends LastRuns {
  organizationId: string
  collection: string
}

/** When jobs last did what their schedules demand: one of them, or all that are configured. */
export function lastRunsOf(sql: Pick<Sql, 'rows'>, only: readonly [string, string] | []): Promise<JobRuns[]> {
  return sql.rows<JobRuns>(
    `
      SELECT organization_id AS "organizationId", collection, ${LAST_RUNS}
      FROM sync_jobs AS job
      WHERE ${only.length === 0 ? 'configured = 1' : OF_JOB}
    `,
    only,
  )
}
