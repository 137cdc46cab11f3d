import { WALK_COLUMNS } from '../../overview.ts'
import type { OpenBackfill, StatusRow } from '../../sqlite/read/status.ts'
import { lockKey } from '../leases.ts'
import type { Sql } from '../sql.ts'

interface JobRow extends Omit<StatusRow, 'running' | 'backfills' | 'total_is_wrong'> {
  total_off: 'once' | 'again' | null
  owner: string | null
  last_walk_id: number | null
}

interface BackfillRow extends Omit<OpenBackfill, 'filters' | 'is_last_run'> {
  id: number
  filters: string
  organization_id: string
  collection: string
}

/** All jobs that `sync_status` shows, by organization and collection; times as text. */
export async function readStatus(
  sql: Pick<Sql, 'rows'>,
  schema: string,
  held: ReadonlySet<string>,
): Promise<StatusRow[]> {
  const rows = await sql.rows<JobRow>(STATUS_SQL)
  const backfills = await sql.rows<BackfillRow>(BACKFILLS_SQL)
  return rows.map(({ owner: _owner, last_walk_id: lastWalk, total_off: totalOff, ...row }) => {
    const isOfJob = (walk: BackfillRow) =>
      walk.organization_id === row.organization_id && walk.collection === row.collection
    return withTimes({
      ...row,
      total_is_wrong: totalOff === 'again',
      running: held.has(String(lockKey(schema, row.organization_id, row.collection))),
      backfills: backfills.filter(isOfJob).map((walk) => openBackfill(walk, lastWalk)),
    })
  })
}

function openBackfill(walk: BackfillRow, lastWalk: number | null): OpenBackfill {
  const { id, filters, organization_id: _id, collection: _collection, ...shown } = walk
  return withTimes({
    ...shown,
    filters: JSON.parse(filters) as Record<string, unknown>,
    is_last_run: id === lastWalk,
  })
}

/** Times come as epoch milliseconds, and are text in the mirror's other kind. */
function withTimes<T extends object>(row: T): T {
  const entries = Object.entries(row).map(([name, value]) =>
    /(?:_at|as_of|_since|_until)$/.test(name) && typeof value === 'number'
      ? [name, new Date(value).toISOString()]
      : [name, value],
  )
  return Object.fromEntries(entries) as T
}

/** The latest end of a budget's pause. */
export async function gateClosedUntil(sql: Pick<Sql, 'rows'>): Promise<string | null> {
  const [row] = await sql.rows<{ at: number | null }>('SELECT max(closed_until) AS at FROM sync_gates')
  return row?.at == null ? null : new Date(row.at).toISOString()
}

const STATUS_SQL = `
  SELECT
    job.organization_id,
    organizations.name AS organization,
    job.collection,
    job.configured,
    job.rows,
    job.owner,
    sync_status.as_of,
    sync_status.last_complete_at,
    sync_status.coverage,
    sync_status.expected_missed,
    sync_status.fresh_as_of,
    sync_status.newest,
    (job.refresh::json ->> 'interval')::double precision AS refreshed_every_ms,
    attempt.started_at AS last_sync_at,
    attempt.finished_at AS last_sync_finished_at,
    run.pages AS last_run_pages,
    run.rows_seen AS last_run_rows_seen,
    run.started_at AS last_run_at,
    run.status AS last_run_status,
    run.trigger AS last_run_trigger,
    run.walk_id AS last_walk_id,
    run.error_code,
    run.error_message,
    job.removals_held,
    CASE WHEN job.removals_held > 0 THEN job.held_why END AS held_why,
    ${WALK_COLUMNS},
    CASE WHEN gate.closed_until >= coalesce(gate.waiting_until, '-infinity') THEN 'the server asked for a pause' ELSE gate.waiting_for END AS waiting_for,
    greatest(gate.closed_until, gate.waiting_until) AS waiting_until
  FROM sync_status
  JOIN sync_jobs AS job USING (organization_id, collection)
  JOIN organizations ON organizations.id = job.organization_id
  -- As in sync_status: a refresh hides no walk, unless it failed.
  LEFT JOIN sync_runs AS run ON run.id = greatest(
    (
      SELECT max(id) FROM sync_runs
      WHERE organization_id = job.organization_id AND collection = job.collection AND trigger <> 'refresh'
    ),
    (
      SELECT CASE WHEN status = 'failed' THEN id END FROM sync_runs
      WHERE organization_id = job.organization_id AND collection = job.collection
      ORDER BY id DESC
      LIMIT 1
    )
  )
  LEFT JOIN LATERAL (
    SELECT *
    FROM sync_runs
    WHERE organization_id = job.organization_id AND collection = job.collection AND trigger IN ('schedule', 'manual')
    ORDER BY id DESC
    LIMIT 1
  ) AS attempt ON true
  LEFT JOIN LATERAL (
    SELECT *
    FROM sync_walks
    WHERE organization_id = job.organization_id AND collection = job.collection AND status = 'complete' AND kind = 'full'
    ORDER BY id DESC
    LIMIT 1
  ) AS last ON true
  LEFT JOIN LATERAL (
    SELECT *
    FROM sync_walks
    WHERE organization_id = job.organization_id AND collection = job.collection AND status = 'open'
    ORDER BY origin = 'sync' DESC, id DESC
    LIMIT 1
  ) AS walk ON true
  LEFT JOIN LATERAL (
    SELECT *
    FROM sync_gates
    WHERE scope IN ('all', job.organization_id, organizations.last_fingerprint)
    ORDER BY greatest(closed_until, waiting_until) DESC
    LIMIT 1
  ) AS gate ON true
  ORDER BY organizations.name, job.collection
`

const BACKFILLS_SQL = `
  SELECT organization_id, collection, id, kind, filters, first_page, next_page AS page, rows_seen, total, updated_at
  FROM sync_walks
  WHERE status = 'open' AND origin = 'backfill'
  ORDER BY id
`
