import type { BeginRun, Lease, OpenWalk, Walk } from '../../../sync/store.ts'
import type { Checkpoint, Job, WalkOutcome } from '../../../sync/types.ts'
import { newWalk, resumedWalk, resumeSql, type WalkRow } from '../../walks.ts'
import type { Sql } from '../sql.ts'
import { checkpointText } from './commit-values.ts'
import { OF_JOB, ofJob, timeOf } from './job.ts'

// `sync_walks`.

export function openWalks(sql: Pick<Sql, 'rows'>, job: Job): Promise<OpenWalk[]> {
  return sql.rows<OpenWalk>(
    `
      SELECT id, origin, kind, path, filters, first_page AS "firstPage", updated_at AS "updatedAt"
      FROM sync_walks
      WHERE ${OF_JOB} AND status = 'open'
      ORDER BY id
    `,
    ofJob(job),
  )
}

/** How the job's last complete full walk ended; null when it has none. */
export async function lastOutcome(sql: Pick<Sql, 'rows'>, job: Job): Promise<Lease['lastWalk']> {
  const [row] = await sql.rows<NonNullable<Lease['lastWalk']>>(
    `
      SELECT coverage, total_off AS "totalOff"
      FROM sync_walks
      WHERE ${OF_JOB} AND status = 'complete' AND kind = 'full'
      ORDER BY id DESC
      LIMIT 1
    `,
    ofJob(job),
  )
  return row ?? null
}

const ROWS_ADDED = `coalesce((SELECT rows_added FROM sync_jobs WHERE ${OF_JOB}), 0)`

export async function beginWalk(
  sql: Sql,
  job: Job,
  begin: Pick<BeginRun, 'plan' | 'filters' | 'first' | 'brief'>,
  at: string,
): Promise<Walk> {
  const { plan, filters, first, brief } = begin
  const [row] = await sql.rows<Pick<Walk, 'id' | 'rowsAddedBefore'>>(
    `
      INSERT INTO sync_walks (
        organization_id, collection, kind, filters, status, next_page, passes, started_at, updated_at, origin, path, first_page, account,
        brief, rows_added_before
      )
      VALUES ($1, $2, $3, $4, 'open', $5, $6, $7, $7, $8, $9, $10, $11, $12, ${ROWS_ADDED})
      RETURNING id, rows_added_before AS "rowsAddedBefore"
    `,
    [
      ...ofJob(job),
      plan.kind,
      filters,
      first.nextPage,
      first.pass,
      at,
      plan.origin,
      job.collection.path,
      plan.firstPage,
      checkpointText(first),
      brief ? 1 : 0,
    ],
  )
  if (!row) throw new Error('PostgreSQL gave a new walk no id')
  return newWalk(row, begin, at)
}

/** See `resumeSql`. */
export async function resumeWalk(
  sql: Sql,
  job: Job,
  walkId: number,
  first: Checkpoint,
  at: string,
): Promise<Walk> {
  const [row] = await sql.rows<WalkRow>(resumeSql('$3', '$4', ROWS_ADDED), [...ofJob(job), walkId, at])
  if (!row) throw new Error(`there is no walk ${walkId}`)
  return resumedWalk(row, first)
}

/** Saves a checkpoint without an answer. */
export async function saveCheckpoint(sql: Sql, walkId: number, next: Checkpoint, at: number): Promise<void> {
  await sql.rows(
    'UPDATE sync_walks SET next_page = $2, passes = $3, account = $4, updated_at = $5 WHERE id = $1',
    [walkId, next.nextPage, next.pass, checkpointText(next), timeOf(at)],
  )
}

export async function completeWalk(
  sql: Sql,
  { walkId, runId }: { walkId: number; runId: number },
  { coverage, expectedMissed, untrusted, totalOff }: WalkOutcome,
  at: string,
): Promise<void> {
  await sql.rows(
    `
      UPDATE sync_walks
      SET
        status = 'complete',
        coverage = $2,
        expected_missed = $3,
        untrusted = $4,
        total_off = $5,
        next_page = NULL,
        brief = brief * coalesce((SELECT brief FROM sync_runs WHERE id = $7), 0),
        updated_at = $6,
        finished_at = $6
      WHERE id = $1
    `,
    [walkId, coverage, expectedMissed, untrusted, totalOff, at, runId],
  )
  await sql.rows('DELETE FROM sync_refreshed WHERE walk_id = $1', [walkId])
}

/** Rows that an abandoned walk was the first to miss are no longer missed; those that another one missed before stay. */
export async function abandonWalk(sql: Sql, walkId: number, at: string): Promise<void> {
  await sql.rows(
    `
      WITH refreshed AS (
        DELETE FROM sync_refreshed USING sync_walks WHERE walk_id = $1 AND id = $1 AND status = 'open'
      ),
      abandoned AS (
        UPDATE sync_walks
        SET status = 'abandoned', updated_at = $2, finished_at = $2
        WHERE id = $1 AND status = 'open'
        RETURNING organization_id, collection
      )
      DELETE FROM sync_missing
      USING abandoned
      WHERE sync_missing.organization_id = abandoned.organization_id AND sync_missing.collection = abandoned.collection
        AND state IN ('missed', 'removable') AND missed_by = $1
    `,
    [walkId, at],
  )
}
