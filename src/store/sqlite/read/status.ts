import type { WalkOutcome } from '../../../sync/types.ts'
import { WALK_COLUMNS } from '../../overview.ts'
import { isOwnerAlive } from '../leases.ts'
import type { Connection } from '../sql.ts'

/** A row of `status`: `sync_status` and details. Times as in the mirror. */
export interface StatusRow {
  organization_id: string
  organization: string
  collection: string
  configured: number
  rows: number
  as_of: string | null
  last_complete_at: string | null
  coverage: string | null
  /** How many items a walk like the last complete full one misses on average. */
  expected_missed: number | null
  /** Null also of a mirror that has no such column. */
  fresh_as_of: string | null
  newest: string | null
  /** How often its newest end is read, as its rate limit allows; null before the first time. Milliseconds. */
  refreshed_every_ms: number | null
  last_run_at: string | null
  /** As in `sync_runs`: `running` also after the process was killed. */
  last_run_status: string | null
  last_run_trigger: string | null
  error_code: string | null
  error_message: string | null
  removals_held: number
  /** Why they are held back; null if none are. */
  held_why: 'brake' | 'empty' | null
  /** Why the last complete full walk is not trusted for removals; null if it is. */
  untrusted: string | null
  /** Whether its last two passes found the total to be wrong. */
  total_is_wrong: boolean
  /** Rows missed by one trusted walk: a second one removes them. */
  rows_missed: number
  held_since: string | null
  held_reason: string | null
  /** The open walk: the sync's, or else the latest backfill's. */
  walk_origin: string | null
  walk_page: number | null
  walk_pages: number | null
  walk_rows_seen: number | null
  walk_total: number | null
  walk_started_at: string | null
  walk_updated_at: string | null
  /** Whether a process works on it now; null if this user cannot tell. */
  running: boolean | null
  /** What its budget waits for, or waited for last, and until when. */
  waiting_for: string | null
  waiting_until: string | null
  backfills: OpenBackfill[]
  /** The last run by schedule or by hand: its start and its end. */
  last_sync_at: string | null
  last_sync_finished_at: string | null
  /** What the last run has read so far. */
  last_run_pages: number | null
  last_run_rows_seen: number | null
}

/** A backfill that is not complete. */
export interface OpenBackfill {
  kind: 'full' | 'partial'
  /** Those of the configuration and those of the command line. */
  filters: Record<string, unknown>
  first_page: number
  page: number | null
  rows_seen: number
  total: number | null
  updated_at: string
  /** Whether the last run of the job is this backfill's. */
  is_last_run: boolean
}

interface JobRow extends Omit<StatusRow, 'running' | 'backfills' | 'total_is_wrong'> {
  total_off: WalkOutcome['totalOff']
  owner: string | null
  last_walk_id: number | null
}

/**
 * All jobs that `sync_status` shows, by organization and collection. `own`: the name of this process's lock file, if it has
 * one; it lives, and must not be opened here.
 */
export function readStatus(connection: Connection, file: string, own: string | null = null): StatusRow[] {
  const statement = connection.prepare(statusSql(columnsOf(connection, 'sync_status')))
  const read = () => statement.all() as JobRow[]
  const first = read()
  const states = new Map<string, boolean | null>(own === null ? [] : [[own, true]])
  for (const { owner } of first)
    if (owner !== null && !states.has(owner)) states.set(owner, isOwnerAlive(file, owner))
  // An owner without a lock may have finished after its name was read: read what it left.
  const rows = [...states.values()].includes(false) ? read() : first
  const backfills = connection.prepare(BACKFILLS_SQL)
  return rows.map(({ owner, last_walk_id: lastWalk, total_off: totalOff, ...row }) => ({
    ...row,
    total_is_wrong: totalOff === 'again',
    // An owner that took the job after the first reading lives.
    running: owner !== null && (states.has(owner) ? (states.get(owner) ?? null) : true),
    backfills: (backfills.all(row.organization_id, row.collection) as BackfillRow[]).map((walk) =>
      openBackfill(walk, lastWalk),
    ),
  }))
}

interface BackfillRow extends Omit<OpenBackfill, 'filters' | 'is_last_run'> {
  id: number
  filters: string
}

function openBackfill({ id, filters, ...walk }: BackfillRow, lastWalk: number | null): OpenBackfill {
  return {
    ...walk,
    filters: JSON.parse(filters) as Record<string, unknown>,
    is_last_run: id === lastWalk,
  }
}

function columnsOf(connection: Connection, view: string): Set<string> {
  const names = connection.prepare('SELECT name FROM pragma_table_info(?)').pluck().all(view) as string[]
  return new Set(names)
}

/** Columns that not every version of `sync_status` has are null. */
function statusSql(columns: ReadonlySet<string>): string {
  const ifThere = (name: string) => (columns.has(name) ? `sync_status.${name}` : `NULL AS ${name}`)
  return `
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
    ${ifThere('fresh_as_of')},
    ${ifThere('newest')},
    ${columns.has('newest') ? "job.refresh ->> '$.interval'" : 'NULL'} AS refreshed_every_ms,
    run.started_at AS last_run_at,
    run.status AS last_run_status,
    run.trigger AS last_run_trigger,
    run.walk_id AS last_walk_id,
    run.error_code,
    run.error_message,
    run.pages AS last_run_pages,
    run.rows_seen AS last_run_rows_seen,
    attempt.started_at AS last_sync_at,
    attempt.finished_at AS last_sync_finished_at,
    job.removals_held,
    iif(job.removals_held > 0, job.held_why, NULL) AS held_why,
    ${WALK_COLUMNS},
    iif(gate.closed_until >= coalesce(gate.waiting_until, ''), 'the server asked for a pause', gate.waiting_for) AS waiting_for,
    max(gate.closed_until, coalesce(gate.waiting_until, '')) AS waiting_until
  FROM sync_status
  JOIN sync_jobs AS job USING (organization_id, collection)
  JOIN organizations ON organizations.id = job.organization_id
  -- As in sync_status: a refresh hides no walk, unless it failed.
  LEFT JOIN sync_runs AS run ON run.id = max(
    coalesce((
      SELECT max(id) FROM sync_runs
      WHERE organization_id = job.organization_id AND collection = job.collection AND trigger <> 'refresh'
    ), 0),
    coalesce((
      SELECT iif(status = 'failed', id, 0) FROM sync_runs
      WHERE organization_id = job.organization_id AND collection = job.collection
      ORDER BY id DESC
      LIMIT 1
    ), 0)
  )
  LEFT JOIN sync_runs AS attempt ON attempt.id = (
    SELECT id
    FROM sync_runs
    WHERE organization_id = job.organization_id AND collection = job.collection AND trigger IN ('schedule', 'manual')
    ORDER BY id DESC
    LIMIT 1
  )
  LEFT JOIN sync_walks AS last ON last.id = (
    SELECT id
    FROM sync_walks
    WHERE organization_id = job.organization_id AND collection = job.collection AND status = 'complete' AND kind = 'full'
    ORDER BY id DESC
    LIMIT 1
  )
  LEFT JOIN sync_walks AS walk ON walk.id = (
    SELECT id
    FROM sync_walks
    WHERE organization_id = job.organization_id AND collection = job.collection AND status = 'open'
    ORDER BY origin = 'sync' DESC, id DESC
    LIMIT 1
  )
  LEFT JOIN sync_gates AS gate ON gate.scope = (
    SELECT scope
    FROM sync_gates
    WHERE scope IN ('all', job.organization_id, organizations.last_fingerprint)
    ORDER BY max(closed_until, coalesce(waiting_until, '')) DESC
    LIMIT 1
  )
  ORDER BY organizations.name, job.collection
`
}

const BACKFILLS_SQL = `
  SELECT id, kind, filters, first_page, next_page AS page, rows_seen, total, updated_at
  FROM sync_walks
  WHERE organization_id = ? AND collection = ? AND status = 'open' AND origin = 'backfill'
  ORDER BY id
`
