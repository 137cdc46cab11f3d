import type { WalkOutcome } from '../../sync/types.ts'
import { OF_OUTER_JOB } from './jobs.ts'
import { all, type Dialect, msOf, one, type Rule, type StoredTime, timeOf } from './sql.ts'
import { JOIN_LAST_RUN } from './views.ts'

// What `status` shows of each job.

/** The message of a run whose process was killed; the next run of its job writes it. `statusSql` finds such runs by it: it must stay as it is. */
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
  fresh_as_of: string | null
  newest: 'first' | 'last' | null
  /** How often its newest end is read, as its rate limit allows; null before the first time. Milliseconds. */
  refreshed_every_ms: number | null
  /** Requests a minute that refreshes of all lists with its budget shared then; null: as above. */
  refresh_share: number | null
  /** The fingerprint of the token that it used last. Keep it out of all output. */
  token: string | null
  /** Since when the whole list is to be read at once, since far more older rows changed than usual; null: it is not. */
  alarm_since: string | null
  /** Why the API is not asked for what changed since a moment, though it is configured so; null: it is asked, or not configured. */
  changed_since_off: string | null
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

/** What is read of a job by one statement. */
type ReadRow = Omit<StatusRow, 'running' | 'backfills' | 'total_is_wrong' | 'waiting_for' | 'waiting_until'>

interface JobRow extends ReadRow {
  total_off: WalkOutcome['totalOff']
  owner: string | null
  last_walk_id: number | null
}

interface BackfillRow extends Omit<OpenBackfill, 'filters' | 'is_last_run'> {
  organization_id: string
  collection: string
  id: number
  filters: string
}

/** A job as the mirror describes it. Its owner may have died since. */
export interface JobLine {
  owner: string | null
  row: Omit<StatusRow, 'running'>
}

/** `running`: whether its owner lives; null if this user cannot tell. */
export function statusOf({ row }: JobLine, running: boolean | null): StatusRow {
  return { ...row, ...(running === false ? NO_WORK : {}), running }
}

/** All jobs that `sync_status` shows, by organization and collection. */
export function* jobLines(dialect: Dialect): Rule<JobLine[]> {
  const jobs = yield* all<JobRow>(statusSql(dialect))
  const backfills = Map.groupBy(yield* all<BackfillRow>(backfillsSql(dialect)), nameOf)
  const waitOf = yield* budgetWaits()
  return jobs.map(({ owner, last_walk_id: lastWalk, total_off: totalOff, ...job }) => ({
    owner,
    row: {
      ...withTimes(job),
      ...waitOf(job.organization_id, job.token),
      total_is_wrong: totalOff === 'again',
      backfills: (backfills.get(nameOf(job)) ?? []).map(
        ({ id, filters, organization_id: _id, collection: _collection, ...walk }) => ({
          ...withTimes(walk),
          filters: JSON.parse(filters) as Record<string, unknown>,
          is_last_run: id === lastWalk,
        }),
      ),
    },
  }))
}

function nameOf(of: Pick<BackfillRow, 'organization_id' | 'collection'>): string {
  return `${of.organization_id} ${of.collection}`
}

/** A server returns times as numbers. */
function withTimes<T extends object>(row: T): T {
  const times = row as Record<string, unknown>
  for (const [name, value] of Object.entries(row))
    if (typeof value === 'number' && /(?:_at|as_of|_since|_until)$/.test(name)) times[name] = timeOf(value)
  return row
}

interface Budget {
  scope: string
  closed_until: StoredTime
  waiting_for: string | null
  waiting_until: StoredTime | null
}

type Wait = Pick<StatusRow, 'waiting_for' | 'waiting_until'>

/** Returns what jobs wait for, by their organization and the fingerprint of its token. */
export function* budgetWaits(): Rule<(organization: string, token: string | null) => Wait> {
  const budgets = yield* all<Budget>('SELECT scope, closed_until, waiting_for, waiting_until FROM sync_gates')
  const byScope = new Map(budgets.map((budget) => [budget.scope, budget]))
  return (organization, token) =>
    longestWait(['all', organization, token ?? ''].flatMap((scope) => byScope.get(scope) ?? []))
}

/** Of all budgets that a job spends, the one with the longest wait. */
function longestWait(budgets: readonly Budget[]): Wait {
  const waits = budgets.map(({ closed_until: closed, waiting_for: reason, waiting_until: waiting }) =>
    waiting !== null && msOf(closed) < msOf(waiting)
      ? { waiting_for: reason, waiting_until: timeOf(waiting) }
      : { waiting_for: 'the server asked for a pause', waiting_until: timeOf(closed) },
  )
  const [longest] = waits.toSorted((left, right) => msOf(right.waiting_until) - msOf(left.waiting_until))
  return longest ?? { waiting_for: null, waiting_until: null }
}

/** The latest end of a budget's pause. */
export function* gateClosedUntil(): Rule<string | null> {
  const row = yield* one<{ at: StoredTime | null }>('SELECT max(closed_until) AS at FROM sync_gates')
  return row?.at == null ? null : timeOf(row.at)
}

/** Replaces what a process that died has left: it is no longer true. */
const NO_WORK = { work: null, retry_since: null, retry_until: null, retry_error: null }

const BY_PLAN = "trigger IN ('schedule', 'manual')"

/** When the run `run` of the open walk `walk` had written all its pages but the last `thirds` thirds. */
export function writtenBut(thirds: number): string {
  return `(SELECT read_at FROM sync_pages WHERE walk_id = run.walk_id AND ordinal = walk.pages - ${thirds} * (run.pages / 3))`
}

/** The columns of a job's line, and what is read for each. */
function columnsOf({
  numberIn,
  textIn,
}: Pick<Dialect, 'numberIn' | 'textIn'>): Record<keyof ReadRow, string> {
  const kept = (name: string) => numberIn('job.refresh', name)
  return {
    organization_id: 'job.organization_id',
    organization: 'organizations.name',
    collection: 'job.collection',
    configured: 'job.configured',
    rows: 'job.rows',
    as_of: 'sync_status.as_of',
    last_complete_at: 'sync_status.last_complete_at',
    coverage: 'sync_status.coverage',
    expected_missed: 'sync_status.expected_missed',
    fresh_as_of: 'sync_status.fresh_as_of',
    newest: 'sync_status.newest',
    refreshed_every_ms: kept('interval'),
    refresh_share: kept('share'),
    changed_since_off: textIn('job.refresh', 'changes', 'off'),
    alarm_since: `CASE WHEN ${kept('alarmedAt')} > ${kept('walkAt')} THEN ${kept('alarmedAt')} END`,
    last_run_at: 'run.started_at',
    last_run_status: 'run.status',
    last_run_trigger: 'run.trigger',
    error_code: 'run.error_code',
    error_message: 'run.error_message',
    last_run_pages: 'run.pages',
    last_run_rows_seen: 'run.rows_seen',
    last_run_third_at: writtenBut(2),
    last_run_two_thirds_at: writtenBut(1),
    last_run_wait_ms: 'run.rate_limit_wait_ms',
    last_sync_finished_at: 'attempt.finished_at',
    tried_since: `(SELECT min(started_at) FROM sync_runs WHERE ${OF_OUTER_JOB} AND ${BY_PLAN} AND id > coalesce(attempt.id, 0))`,
    failing_since: 'job.failing_since',
    failing_by: 'job.failing_by',
    failing_code: 'job.failing_code',
    failing_message: 'job.failing_message',
    work: `CASE
      WHEN job.verifying = 1 THEN 'verify'
      WHEN latest.status = 'running' THEN latest.trigger
      WHEN walked.status = 'running' THEN walked.trigger
    END`,
    retry_since: 'job.retry_since',
    retry_until: 'job.retry_until',
    retry_error: 'job.retry_error',
    removals_held: 'job.removals_held',
    held_why: 'CASE WHEN job.removals_held > 0 THEN job.held_why END',
    untrusted: 'complete.untrusted',
    rows_missed: `(SELECT count(*) FROM sync_missing WHERE ${OF_OUTER_JOB} AND state = 'missed')`,
    held_since: 'organizations.held_since',
    held_reason: 'organizations.held_reason',
    walk_origin: 'walk.origin',
    walk_page: 'walk.next_page',
    walk_pages: 'walk.pages',
    walk_rows_seen: 'walk.rows_seen',
    walk_total: 'walk.total',
    walk_started_at: 'walk.started_at',
    walk_updated_at: 'walk.updated_at',
    token: 'organizations.last_fingerprint',
  }
}

function statusSql(dialect: Dialect): string {
  const columns = Object.entries(columnsOf(dialect)).map(([name, value]) => `${value} AS ${name}`)
  const joinFirst = (table: string, as: string, where: string, order = 'id DESC') =>
    dialect.joinFirst(table, as, `${OF_OUTER_JOB} AND ${where}`, order)
  return `
  SELECT
    job.owner,
    run.walk_id AS last_walk_id,
    complete.total_off,
    ${columns.join(',\n    ')}
  FROM sync_status
  JOIN sync_jobs AS job USING (organization_id, collection)
  JOIN organizations ON organizations.id = job.organization_id
  ${joinFirst('sync_runs', 'walked', "trigger <> 'refresh'")}
  ${joinFirst('sync_runs', 'latest', 'true')}
  ${JOIN_LAST_RUN}
  ${joinFirst('sync_runs', 'attempt', `${BY_PLAN} AND finished_at IS NOT NULL AND coalesce(error_message, '') <> '${DIED}'`)}
  ${joinFirst('sync_walks', 'complete', "status = 'complete' AND kind = 'full'")}
  ${joinFirst('sync_walks', 'walk', "status = 'open'", "origin = 'sync' DESC, id DESC")}
  ORDER BY organizations.name, job.collection
`
}

/** The backfills that are not complete: by the jobs, since an index finds the open walks of each. */
function backfillsSql({ join }: Dialect): string {
  return `
    SELECT walk.organization_id, walk.collection, walk.id, walk.kind, walk.filters, walk.first_page, walk.next_page AS page,
      walk.rows_seen, walk.total, walk.updated_at
    FROM sync_jobs AS job
    ${join} sync_walks AS walk
      ON walk.organization_id = job.organization_id AND walk.collection = job.collection AND walk.status = 'open'
    WHERE walk.origin = 'backfill'
    ORDER BY walk.id
  `
}

/** Only the names matter here, so any function will do. */
const NAMES = Object.keys(columnsOf({ numberIn: String, textIn: String }))
const NO_VALUES = Object.fromEntries(NAMES.map((name) => [name, null])) as Record<keyof ReadRow, null>

/** The row of a configured job that is not in the mirror yet. */
export function neverSynced(organization: { id: string; name: string }, collection: string): StatusRow {
  return {
    ...NO_VALUES,
    organization_id: organization.id,
    organization: organization.name,
    collection,
    configured: 1,
    rows: 0,
    removals_held: 0,
    rows_missed: 0,
    total_is_wrong: false,
    running: false,
    waiting_for: null,
    waiting_until: null,
    backfills: [],
  }
}
