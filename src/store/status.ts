import type { WalkOutcome } from '../sync/types.ts'

// What `status`, and those who wait for a list, are shown of either store.

/** What the line of a run says whose process was killed: the next run of its job writes it. */
export const DIED = 'the process ended without a word'

/** A row of `status`: `sync_status` and details. Times as in the mirror. */
export interface StatusRow {
  organization_id: string
  organization: string
  collection: string
  configured: number
  rows: number
  as_of: string | null
  last_complete_at: string | null
  coverage: 'steady' | 'repaired' | 'drifted' | null
  /** How many items a walk like the last complete full one misses on average. */
  expected_missed: number | null
  /** Null also of a mirror that has no such column. */
  fresh_as_of: string | null
  newest: 'first' | 'last' | null
  /** How often its newest end is read, as its rate limit allows; null before the first time. Milliseconds. */
  refreshed_every_ms: number | null
  last_run_at: string | null
  /** As in `sync_runs`: `running` also after the process was killed. */
  last_run_status: 'running' | 'succeeded' | 'failed' | 'interrupted' | null
  last_run_trigger: string | null
  error_code: string | null
  error_message: string | null
  /** End of the first run that failed since one succeeded; null: none did. */
  failing_since: string | null
  /** `refresh`: a part of the list could not be read, and any run that succeeds ends it; `walk`: only one that may read the whole list does. */
  failing_by: 'walk' | 'refresh' | null
  /** Of the last run that failed. */
  failing_code: string | null
  failing_message: string | null
  removals_held: number
  /** Why they are held back; null if none are. */
  held_why: 'brake' | 'empty' | null
  /** Why the last complete full walk is not trusted for removals; null if it is. */
  untrusted: string | null
  /** Whether its last two passes found the total to be wrong. */
  total_is_wrong: boolean
  /** Rows missed by one trusted walk. If a second one misses them too, they are removed or held back. */
  rows_missed: number
  held_since: string | null
  held_reason: string | null
  /** The open walk: the sync's, or else the latest backfill's. */
  walk_origin: 'sync' | 'backfill' | null
  walk_page: number | null
  walk_pages: number | null
  walk_rows_seen: number | null
  walk_total: number | null
  walk_started_at: string | null
  walk_updated_at: string | null
  /** Whether a process works on it now; null if this user cannot tell. */
  running: boolean | null
  /** What that process does: the `trigger` of its run, or `verify`; null: nothing, or it is about to begin. */
  work: 'schedule' | 'manual' | 'backfill' | 'refresh' | 'verify' | null
  /** A page that it asks for again: when that failed first, when it is asked for next, and how it failed last. */
  retry_since: string | null
  retry_until: string | null
  retry_error: string | null
  /** What its budget waits for, or waited for last, and until when. */
  waiting_for: string | null
  waiting_until: string | null
  backfills: OpenBackfill[]
  /** End of the last run by schedule or by hand whose process was not killed. */
  last_sync_finished_at: string | null
  /** Start of the first such run since then; null: none began. */
  tried_since: string | null
  /** What the last run has read so far. */
  last_run_pages: number | null
  last_run_rows_seen: number | null
  last_run_third_at: string | null
  last_run_two_thirds_at: string | null
  last_run_wait_ms: number | null
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

/** A row as `statusSql` reads it. */
export interface JobRow extends Omit<StatusRow, 'running' | 'backfills' | 'total_is_wrong'> {
  total_off: WalkOutcome['totalOff']
  owner: string | null
  last_walk_id: number | null
}

export interface BackfillRow extends Omit<OpenBackfill, 'filters' | 'is_last_run'> {
  organization_id: string
  collection: string
  id: number
  filters: string
}

export function statusOf(
  { owner: _owner, last_walk_id: lastWalk, total_off: totalOff, ...job }: JobRow,
  running: boolean | null,
  backfills: readonly BackfillRow[],
): StatusRow {
  return {
    ...job,
    ...(running === false ? NO_WORK : {}),
    total_is_wrong: totalOff === 'again',
    running,
    backfills: backfills.map(({ id, filters, organization_id: _id, collection: _collection, ...walk }) => ({
      ...walk,
      filters: JSON.parse(filters) as Record<string, unknown>,
      is_last_run: id === lastWalk,
    })),
  }
}

/** What a process that died has left says nothing. */
const NO_WORK = { work: null, retry_since: null, retry_until: null, retry_error: null }

/** The columns of `sync_jobs` that older mirrors do not have. */
export type LateColumn =
  | 'failing_since'
  | 'failing_by'
  | 'failing_code'
  | 'failing_message'
  | 'verifying'
  | 'retry_since'
  | 'retry_until'
  | 'retry_error'

/** The parts of the SQL that differ between the stores. */
export interface StatusDialect {
  /** A column of `sync_status`, which older mirrors may not have. */
  fresh: (column: 'fresh_as_of' | 'newest') => string
  refreshedEvery: string
  /** A column of `sync_jobs`, or what stands for it. */
  late: (column: LateColumn) => string
  /** A LEFT JOIN of the first of the rows, in this order. */
  joinFirst: (join: { table: string; as: string; where: string; order: string }) => string
  /** A LEFT JOIN, as `gate`, of the budget of the job that is waited for longest. */
  joinGate: string
}

const OF_JOB = 'organization_id = job.organization_id AND collection = job.collection'

const BY_PLAN = "trigger IN ('schedule', 'manual')"

/** The later of two times: the end of a budget's pause, and the end of what it waits for. */
export const WAITS_UNTIL = 'CASE WHEN closed_until < waiting_until THEN waiting_until ELSE closed_until END'

/** When the run `run` of the open walk `walk` had written its pages but so many thirds of them. */
function writtenBut(thirds: number): string {
  return `(SELECT read_at FROM sync_pages WHERE walk_id = run.walk_id AND ordinal = walk.pages - ${thirds} * (run.pages / 3))`
}

/** All jobs that `sync_status` shows, by organization and collection. */
export function statusSql({ fresh, refreshedEvery, late, joinFirst, joinGate }: StatusDialect): string {
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
    ${fresh('fresh_as_of')},
    ${fresh('newest')},
    ${refreshedEvery} AS refreshed_every_ms,
    run.started_at AS last_run_at,
    run.status AS last_run_status,
    run.trigger AS last_run_trigger,
    run.walk_id AS last_walk_id,
    run.error_code,
    run.error_message,
    run.pages AS last_run_pages,
    run.rows_seen AS last_run_rows_seen,
    ${writtenBut(2)} AS last_run_third_at,
    ${writtenBut(1)} AS last_run_two_thirds_at,
    run.rate_limit_wait_ms AS last_run_wait_ms,
    attempt.finished_at AS last_sync_finished_at,
    (SELECT min(started_at) FROM sync_runs WHERE ${OF_JOB} AND ${BY_PLAN} AND id > coalesce(attempt.id, 0)) AS tried_since,
    ${late('failing_since')} AS failing_since,
    ${late('failing_by')} AS failing_by,
    ${late('failing_code')} AS failing_code,
    ${late('failing_message')} AS failing_message,
    CASE
      WHEN ${late('verifying')} = 1 THEN 'verify'
      WHEN latest.status = 'running' THEN latest.trigger
      WHEN walked.status = 'running' THEN walked.trigger
    END AS work,
    ${late('retry_since')} AS retry_since,
    ${late('retry_until')} AS retry_until,
    ${late('retry_error')} AS retry_error,
    job.removals_held,
    CASE WHEN job.removals_held > 0 THEN job.held_why END AS held_why,
    last.untrusted,
    last.total_off,
    (SELECT count(*) FROM sync_missing WHERE ${OF_JOB} AND state = 'missed') AS rows_missed,
    organizations.held_since,
    organizations.held_reason,
    walk.origin AS walk_origin,
    walk.next_page AS walk_page,
    walk.pages AS walk_pages,
    walk.rows_seen AS walk_rows_seen,
    walk.total AS walk_total,
    walk.started_at AS walk_started_at,
    walk.updated_at AS walk_updated_at,
    CASE
      WHEN gate.closed_until < gate.waiting_until THEN gate.waiting_for
      WHEN gate.closed_until IS NOT NULL THEN 'the server asked for a pause'
    END AS waiting_for,
    CASE WHEN gate.closed_until < gate.waiting_until THEN gate.waiting_until ELSE gate.closed_until END AS waiting_until
  FROM sync_status
  JOIN sync_jobs AS job USING (organization_id, collection)
  JOIN organizations ON organizations.id = job.organization_id
  ${joinFirst({ table: 'sync_runs', as: 'walked', where: `${OF_JOB} AND trigger <> 'refresh'`, order: 'id DESC' })}
  ${joinFirst({ table: 'sync_runs', as: 'latest', where: OF_JOB, order: 'id DESC' })}
  -- As in sync_status: a refresh hides no walk, unless it failed after the end of that walk.
  LEFT JOIN sync_runs AS run ON run.id = CASE
    WHEN latest.status = 'failed' AND (walked.id IS NULL OR latest.started_at >= walked.finished_at) THEN latest.id
    ELSE walked.id
  END
  ${joinFirst({
    table: 'sync_runs',
    as: 'attempt',
    where: `${OF_JOB} AND ${BY_PLAN} AND finished_at IS NOT NULL AND coalesce(error_message, '') <> '${DIED}'`,
    order: 'id DESC',
  })}
  ${joinFirst({
    table: 'sync_walks',
    as: 'last',
    where: `${OF_JOB} AND status = 'complete' AND kind = 'full'`,
    order: 'id DESC',
  })}
  ${joinFirst({
    table: 'sync_walks',
    as: 'walk',
    where: `${OF_JOB} AND status = 'open'`,
    order: "origin = 'sync' DESC, id DESC",
  })}
  ${joinGate}
  ORDER BY organizations.name, job.collection
`
}

/** The backfills that are not complete. */
export const BACKFILLS_SQL = `
  SELECT organization_id, collection, id, kind, filters, first_page, next_page AS page, rows_seen, total, updated_at
  FROM sync_walks
  WHERE status = 'open' AND origin = 'backfill'
`

/** The run of a job that another process has. */
export const RUNNING_RUN = `
  SELECT
    run.trigger,
    run.started_at AS "startedAt",
    run.pages,
    run.rows_seen AS "rowsSeen",
    ${writtenBut(2)} AS "thirdAt",
    ${writtenBut(1)} AS "twoThirdsAt",
    run.rate_limit_wait_ms AS "rateLimitWaitMs",
    walk.next_page AS "nextPage",
    walk.rows_seen AS "walkSeen",
    walk.total,
    walk.updated_at AS "updatedAt",
    (
      SELECT max(${WAITS_UNTIL})
      FROM sync_gates
      WHERE scope IN ('all', run.organization_id, organizations.last_fingerprint)
    ) AS "waitingUntil"
  FROM sync_runs AS run
  LEFT JOIN organizations ON organizations.id = run.organization_id
  LEFT JOIN sync_walks AS walk ON walk.id = run.walk_id
  -- Whoever compares a list has no run: one that is open was left by a process that died.
  JOIN sync_jobs AS job
    ON job.organization_id = run.organization_id AND job.collection = run.collection AND job.verifying = 0
  WHERE run.organization_id = :organization AND run.collection = :collection AND run.status = 'running'
  -- A refresh may run within a walk.
  ORDER BY run.walk_id IS NULL, run.id DESC
  LIMIT 1
`
