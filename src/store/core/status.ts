import { OF_OUTER_JOB } from './jobs.ts'
import { all, type Dialect, msOf, type Rule, type StoredTime, timeOf } from './sql.ts'
import { JOIN_LAST_RUN } from './views.ts'

// What `status` shows of each job.

/** The message of a run whose process was killed; the next run of its job writes it. `statusSql` finds such runs by it: it must stay as it is. */
export const DIED = 'the process ended without a word'

/** A column of `statusSql`: its expression, and the type of its values. */
interface Read<T> {
  sql: (dialect: Dialect) => string
  /** Only its type is used. */
  of?: T
}

function read<T>(sql: string | Read<T>['sql']): Read<T> {
  return { sql: typeof sql === 'string' ? () => sql : sql }
}

/** A number that the last refresh noted. */
function kept(name: string): Read<unknown>['sql'] {
  return ({ numberIn }) => numberIn('job.refresh', name)
}

const BY_PLAN = "trigger IN ('schedule', 'manual')"

/** What `statusSql` reads of each job: `sync_status` and details. Times as in the mirror. */
const COLUMNS = {
  organization_id: read<string>('job.organization_id'),
  organization: read<string>('organizations.name'),
  collection: read<string>('job.collection'),
  configured: read<number>('job.configured'),
  rows: read<number>('job.rows'),
  as_of: read<string | null>('sync_status.as_of'),
  last_complete_at: read<string | null>('sync_status.last_complete_at'),
  coverage: read<'steady' | 'repaired' | 'drifted' | null>('sync_status.coverage'),
  fresh_as_of: read<string | null>('sync_status.fresh_as_of'),
  newest: read<'first' | 'last' | null>('sync_status.newest'),
  /** How often its newest end is read, as its rate limit allows; null before the first time. Milliseconds. */
  refreshed_every_ms: read<number | null>(kept('interval')),
  /** Requests a minute that refreshes of all lists with its budget shared then; null: as above. */
  refresh_share: read<number | null>(kept('share')),
  /** The fingerprint of the token that it used last. Keep it out of all output. */
  token: read<string | null>('organizations.last_fingerprint'),
  last_run_at: read<string | null>('run.started_at'),
  /** As in `sync_runs`: `running` also after the process was killed. */
  last_run_status: read<'running' | 'succeeded' | 'failed' | 'interrupted' | null>('run.status'),
  last_run_trigger: read<string | null>('run.trigger'),
  error_code: read<string | null>('run.error_code'),
  error_message: read<string | null>('run.error_message'),
  /** End of the first run that failed since one succeeded; null: none did. */
  failing_since: read<string | null>('job.failing_since'),
  /** `refresh`: a part of the list could not be read, and any run that succeeds ends it; `walk`: only one that may read the whole list does. */
  failing_by: read<'walk' | 'refresh' | null>('job.failing_by'),
  /** Of the last run that failed. */
  failing_code: read<string | null>('job.failing_code'),
  failing_message: read<string | null>('job.failing_message'),
  removals_held: read<number>('job.removals_held'),
  /** Why they are held back; null if none are. */
  held_why: read<'brake' | 'empty' | null>('CASE WHEN job.removals_held > 0 THEN job.held_why END'),
  /** Those of them that the list no longer has since its filters or its path were changed. */
  held_out_of_scope: read<number | null>(`CASE WHEN job.removals_held > 0 THEN (
      SELECT count(*) FROM sync_missing WHERE ${OF_OUTER_JOB} AND state = 'held' AND reason = 'out_of_scope'
    ) END`),
  /** Why the last complete full walk is not trusted for removals; null if it is. */
  untrusted: read<string | null>('complete.untrusted'),
  /** Rows missed by one trusted walk. If a second one misses them too, they are removed or held back. */
  rows_missed: read<number>(`(SELECT count(*) FROM sync_missing WHERE ${OF_OUTER_JOB} AND state = 'missed')`),
  held_since: read<string | null>('organizations.held_since'),
  held_reason: read<string | null>('organizations.held_reason'),
  /** The open walk: the sync's, or else the latest backfill's. */
  walk_origin: read<'sync' | 'backfill' | null>('walk.origin'),
  walk_page: read<number | null>('walk.next_page'),
  walk_pages: read<number | null>('walk.pages'),
  walk_rows_seen: read<number | null>('walk.rows_seen'),
  walk_total: read<number | null>('walk.total'),
  walk_updated_at: read<string | null>('walk.updated_at'),
  /** Runs that went on with the open walk, read a page, and stopped where they had begun: other pages come, and this one does not. */
  walk_stops: read<number | null>(`CASE WHEN job.failing_since IS NOT NULL THEN (
      SELECT count(*)
      FROM sync_runs
      WHERE ${OF_OUTER_JOB} AND walk_id = walk.id AND status = 'failed' AND pages > 0 AND first_page = walk.next_page
    ) END`),
  /** What that process does: the `trigger` of its run, or `verify`; null: nothing, or it is about to begin. */
  work: read<'schedule' | 'manual' | 'backfill' | 'refresh' | 'verify' | null>(`CASE
      WHEN job.verifying = 1 THEN 'verify'
      WHEN latest.status = 'running' THEN latest.trigger
      WHEN walked.status = 'running' THEN walked.trigger
    END`),
  /** A page that it asks for again: when that failed first, when it is asked for next, and how it failed last. */
  retry_since: read<string | null>('job.retry_since'),
  retry_until: read<string | null>('job.retry_until'),
  retry_error: read<string | null>('job.retry_error'),
  /** End of the last run by schedule or by hand whose process was not killed. */
  last_sync_finished_at: read<string | null>('attempt.finished_at'),
  /** Start of the first such run since then; null: none began. */
  tried_since: read<string | null>(
    `(SELECT min(started_at) FROM sync_runs WHERE ${OF_OUTER_JOB} AND ${BY_PLAN} AND id > coalesce(attempt.id, 0))`,
  ),
  /** What the last run has read so far. */
  last_run_pages: read<number | null>('run.pages'),
  /** How long it has waited for its rate limit. */
  last_run_waited_ms: read<number | null>('run.rate_limit_wait_ms'),
}

type StatusColumns = typeof COLUMNS

/** A row of `statusSql`. */
type ReadRow = { [Name in keyof StatusColumns]: StatusColumns[Name] extends Read<infer T> ? T : never }

/** A row of `status`. */
export interface StatusRow extends ReadRow {
  /** Whether a process works on it now; null if this user cannot tell. */
  running: boolean | null
  /** What its budget waits for, or waited for last, and until when. */
  waiting_for: string | null
  waiting_until: string | null
  backfills: OpenBackfill[]
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

interface ReadJob extends ReadRow {
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
  const jobs = yield* all<ReadJob>(statusSql(dialect))
  const backfills = Map.groupBy(yield* all<BackfillRow>(backfillsSql(dialect)), nameOf)
  const waitOf = yield* budgetWaits()
  return jobs.map(({ owner, last_walk_id: lastWalk, ...job }) => ({
    owner,
    row: {
      ...withTimes(job),
      ...waitOf(job.organization_id, job.token),
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
function* budgetWaits(): Rule<(organization: string, token: string | null) => Wait> {
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

/** What can be wrong with a list, beside that it is overdue. */
export interface ListTrouble {
  held_since: StoredTime | null
  removals_held: number
  failing_since: StoredTime | null
  failing_code: string | null
}

export interface TroubledList extends ListTrouble {
  organization_id: string
  organization: string
  collection: string
  failing_message: string | null
}

/** The configured lists with any trouble. */
export function* troubledLists(): Rule<TroubledList[]> {
  return yield* all<TroubledList>(`
    SELECT
      job.organization_id, organizations.name AS organization, job.collection,
      organizations.held_since, job.removals_held, job.failing_since, job.failing_code, job.failing_message
    FROM sync_jobs AS job
    JOIN organizations ON organizations.id = job.organization_id
    WHERE job.configured = 1
      AND (organizations.held_since IS NOT NULL OR job.removals_held > 0 OR job.failing_since IS NOT NULL)
    ORDER BY organizations.name, job.collection
  `)
}

/** What a rate budget is known to allow; `known` as `api/rate` stores it. */
export interface StoredGate {
  scope: string
  known: string | null
}

export function storedGates(): Rule<StoredGate[]> {
  return all('SELECT scope, known FROM sync_gates')
}

/** Replaces what a process that died has left: it is no longer true. */
const NO_WORK = { work: null, retry_since: null, retry_until: null, retry_error: null }

function statusSql(dialect: Dialect): string {
  const columns = Object.entries(COLUMNS).map(([name, { sql }]) => `${sql(dialect)} AS ${name}`)
  const joinFirst = (table: string, as: string, where: string, order = 'id DESC') =>
    dialect.joinFirst(table, as, `${OF_OUTER_JOB} AND ${where}`, order)
  return `
  SELECT
    job.owner,
    run.walk_id AS last_walk_id,
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

/** Selects the backfills that are not complete, from the jobs on: an index finds the open walks of each. */
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

const NO_VALUES = Object.fromEntries(Object.keys(COLUMNS).map((name) => [name, null])) as Record<
  keyof StatusColumns,
  null
>

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
    running: false,
    waiting_for: null,
    waiting_until: null,
    backfills: [],
  }
}
