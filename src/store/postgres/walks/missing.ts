import type { HeldRemovals, HoldReason, MissingCounts, MissingRule } from '../../../sync/store.ts'
import type { Job } from '../../../sync/types.ts'
import type { TableShape } from '../../columns/catalog.ts'
import { quoted, type Sql } from '../sql.ts'
import { hasId, idOfRow } from '../tables/keys.ts'
import { nextSeqSql } from '../tables/seq.ts'
import { tableName } from '../tables/shape.ts'
import { OF_JOB, ofJob, scopeOf } from './job.ts'

// `sync_missing`: live rows that trusted walks did not see. One walk makes a row `missed`, a second one `removable`; a
// `held` row stays until a person decides. When a walk or refresh sees the item again, its entry goes.

/** The pages that other walks of the job wrote after the first page of the walk $3. */
const PAGES_OF_OTHERS = `
  FROM sync_walks AS other
  JOIN sync_pages AS page
    ON page.walk_id = other.id
    AND page.sequence > (SELECT coalesce(min(sequence), 0) FROM sync_pages WHERE walk_id = $3)
  WHERE other.organization_id = $1 AND other.collection = $2 AND other.id <> $3
`

/** Ids of rejects begin with NUL, which PostgreSQL reads from no JSON. No key is like the rest of one. */
const idsOf = (pages: string) => `
  SELECT id FROM (${pages}) AS page, json_array_elements_text(replace(page.keys, '"\\u0000', '"')::json) AS id
`

const IDS_SEEN = `
  ${idsOf('SELECT keys FROM sync_pages WHERE walk_id = $3')}
  UNION
  ${idsOf(`SELECT page.keys ${PAGES_OF_OTHERS}`)}
  UNION
  ${idsOf('SELECT keys FROM sync_refreshed WHERE walk_id = $3')}
`

/** Whether other walks of the job wrote pages since this walk's first one. */
export async function isOverlapped(sql: Pick<Sql, 'rows'>, job: Job, walkId: number): Promise<boolean> {
  const rows = await sql.rows(`SELECT 1 ${PAGES_OF_OTHERS} LIMIT 1`, [...ofJob(job), walkId])
  return rows.length > 0
}

/** Whether refreshes read pages while this walk was open. */
export async function isRefreshed(sql: Pick<Sql, 'rows'>, walkId: number): Promise<boolean> {
  const rows = await sql.rows('SELECT 1 FROM sync_refreshed WHERE walk_id = $1 LIMIT 1', [walkId])
  return rows.length > 0
}

/** Notes what a trusted walk did not see. Repeating it for the same walk changes nothing. */
export async function noteMissing(
  sql: Sql,
  shape: TableShape,
  { job, rule: { walkId, atOnce }, at }: { job: Job; rule: MissingRule; at: string },
): Promise<void> {
  await sql.rows(`DELETE FROM sync_missing WHERE ${OF_JOB} AND key IN (${IDS_SEEN})`, [...ofJob(job), walkId])
  await countHeld(sql, job)
  const id = idOfRow(shape, 'raw')
  const [scope] = await sql.rows<{ isOther: boolean; isMixed: boolean }>(
    `
      SELECT
        scope_path IS DISTINCT FROM $3 OR scope_filters IS DISTINCT FROM $4 AS "isOther",
        scope_mixed = 1 AS "isMixed"
      FROM sync_jobs
      WHERE ${OF_JOB}
    `,
    [...ofJob(job), ...scopeOf(job)],
  )
  const isOther = scope?.isOther === true
  const reason = isOther || scope?.isMixed === true ? 'out_of_scope' : 'removed'
  await sql.rows(
    `
      WITH seen AS MATERIALIZED (${IDS_SEEN})
      INSERT INTO sync_missing (organization_id, collection, key, state, missed_by, since, reason)
      SELECT $1, $2, ${id}, $4, $3, $5, $6
      FROM ${quoted(tableName(shape.name, 'raw'))} AS raw
      WHERE raw."_organization_id" = $1 AND NOT EXISTS (SELECT 1 FROM seen WHERE seen.id = ${id})
      ON CONFLICT (organization_id, collection, key) DO UPDATE
      SET state = 'removable', reason = CASE WHEN $7 THEN 'out_of_scope' ELSE sync_missing.reason END
      WHERE sync_missing.state = 'missed' AND sync_missing.missed_by <> excluded.missed_by
    `,
    [...ofJob(job), walkId, atOnce ? 'removable' : 'missed', at, reason, isOther],
  )
}

export async function countMissing(
  sql: Pick<Sql, 'rows'>,
  job: Job,
): Promise<MissingCounts & { missing: boolean }> {
  const [row] = await sql.rows<MissingCounts & { missing: boolean }>(
    `
      SELECT
        rows AS live,
        removals_held AS held,
        (SELECT count(*) FROM sync_missing WHERE ${OF_JOB} AND state = 'removable') AS removable,
        EXISTS (SELECT 1 FROM sync_missing WHERE ${OF_JOB}) AS missing
      FROM sync_jobs
      WHERE ${OF_JOB}
    `,
    ofJob(job),
  )
  return row ?? { live: 0, held: 0, removable: 0, missing: false }
}

export async function heldRemovals(sql: Sql, job: Job): Promise<HeldRemovals | null> {
  const [row] = await sql.rows<HeldRemovals>(
    `SELECT removals_held AS rows, rows AS live, held_why AS why FROM sync_jobs WHERE ${OF_JOB} AND removals_held > 0`,
    ofJob(job),
  )
  return row ?? null
}

/** Holds back all removable rows; `why` null: for the same reason as the rows that are already held. */
export async function holdMissing(sql: Sql, job: Job, why: HoldReason | null): Promise<void> {
  await sql.rows(`UPDATE sync_missing SET state = 'held' WHERE ${OF_JOB} AND state = 'removable'`, ofJob(job))
  await countHeld(sql, job, why)
}

/** Removes all rows that are removable or held, and counts them in the run. */
export async function removeMissing(
  sql: Sql,
  shape: TableShape,
  job: Job,
  runId: number,
  at: string,
): Promise<void> {
  const keys = shape.keyColumns.map(quoted)
  const gone = (table: string) => `
    FROM sync_missing AS missing
    WHERE missing.organization_id = $1 AND missing.collection = $2 AND missing.state IN ('removable', 'held')
      AND ${table}."_organization_id" = $1 AND ${hasId(shape, table, 'missing.key')}
  `
  const raw = quoted(tableName(shape.name, 'raw'))
  await sql.rows(
    `DELETE FROM ${quoted(shape.name)} AS live ${gone('live').replace('FROM', 'USING')}`,
    ofJob(job),
  )
  if (job.collection.history !== false)
    await sql.rows(
      `
        WITH written AS (${nextSeqSql('$2', '$3::timestamptz')})
        INSERT INTO ${quoted(tableName(shape.name, 'history'))} (
          "_organization_id", ${keys.join(', ')}, "_json", "_valid_from", "_valid_to", "_reason", "_first_seen_at",
          "_valid_from_seq", "_valid_to_seq"
        )
        SELECT $1, ${keys.map((key) => `live.${key}`).join(', ')}, live."_json", live."_changed_at", greatest(live."_changed_at", $3), missing.reason, live."_first_seen_at",
          live."_changed_seq", written.seq
        ${gone('live').replace('FROM ', `FROM written, ${raw} AS live, `)}
      `,
      [...ofJob(job), at],
    )
  const [removed] = await sql.rows<{ rows: number }>(
    `
      WITH gone AS (DELETE FROM ${raw} AS live ${gone('live').replace('FROM', 'USING')} RETURNING 1)
      SELECT count(*) AS rows FROM gone
    `,
    ofJob(job),
  )
  await sql.rows(`DELETE FROM sync_missing WHERE ${OF_JOB} AND state IN ('removable', 'held')`, ofJob(job))
  await sql.rows(`UPDATE sync_jobs SET rows = rows - $3 WHERE ${OF_JOB}`, [...ofJob(job), removed?.rows ?? 0])
  await countHeld(sql, job)
  await sql.rows(
    'UPDATE sync_runs SET rows_removed = rows_removed + $2, brief = CASE WHEN $2 > 0 THEN 0 ELSE brief END WHERE id = $1',
    [runId, removed?.rows ?? 0],
  )
}

/** After a trusted walk: each live row is listed in this scope, or known to be missing. */
export async function confirmScope(sql: Sql, job: Job, walkId: number): Promise<void> {
  // Pages of another list that were written during the walk are as new as the walk.
  const isMixed = await isOverlapped(sql, job, walkId)
  await sql.rows(
    `
      UPDATE sync_jobs
      SET scope_path = $3, scope_filters = $4, scope_mixed = CASE WHEN $5 THEN scope_mixed ELSE 0 END
      WHERE ${OF_JOB}
    `,
    [...ofJob(job), ...scopeOf(job), isMixed],
  )
}

/** Counts the held rows of a job again. */
async function countHeld(sql: Sql, job: Job, why: HoldReason | null = null): Promise<void> {
  await sql.rows(
    `
      UPDATE sync_jobs
      SET
        removals_held = (SELECT count(*) FROM sync_missing WHERE ${OF_JOB} AND state = 'held'),
        held_why = coalesce($3, held_why)
      WHERE ${OF_JOB}
    `,
    [...ofJob(job), why],
  )
}
