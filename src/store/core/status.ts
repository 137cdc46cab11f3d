import type { End } from '../../sync/refresh/ends.ts'
import type { Coverage, Trigger, WalkPlan } from '../../sync/types.ts'
import { BY_PLAN, JOIN_COMPLETE, JOIN_LAST_RUN, joinLast, OF_OUTER_JOB } from '../schema.ts'
import { type DaemonRecord, daemons, type IsAlive, livingOwners } from './leases.ts'
import { publishFailure } from './publication.ts'
import { all, only, quoted, type Rule } from './sql.ts'

// What `status` reads of the mirror.

/** A row of `sync_status`; here that of a list of which nothing is in the mirror yet. Times as in the mirror. */
const LIST = {
  organization_id: '',
  organization: '',
  collection: '',
  rows: 0,
  as_of: null as string | null,
  last_complete_at: null as string | null,
  coverage: null as Coverage | null,
  fresh_as_of: null as string | null,
  newest: null as End | null,
  last_run_at: null as string | null,
  /** As in `sync_runs`: `running` also after the process was killed. */
  last_run_status: null as 'running' | 'succeeded' | 'failed' | 'interrupted' | null,
  error_code: null as string | null,
  failing_since: null as string | null,
  held_since: null as string | null,
  removals_held: 0,
}

export type ListRow = typeof LIST

export const LIST_COLUMNS = Object.keys(LIST) as (keyof ListRow)[]

/** A column beside them: its expression, and its value for a list of which nothing is in the mirror yet; null where it can be that. */
function column<T>(sql: string, ...[none]: null extends T ? [] : [T]): { sql: string; none: T } {
  return { sql, none: (none ?? null) as T }
}

const OF_BUDGET = "FROM sync_gates WHERE scope IN ('all', job.organization_id, organization.last_fingerprint)"

/** What `status` reads of each list beside its row of `sync_status`. */
const DETAILS = {
  configured: column<number>('job.configured', 1),
  /** The process that works on it, or did so when it died. Keep it out of all output. */
  owner: column<string | null>('job.owner'),
  held_reason: column<string | null>('token.reason'),
  /** Of the last run that failed. */
  failing_code: column<string | null>('job.failing_code'),
  failing_message: column<string | null>('job.failing_message'),
  /** Held removals that the list no longer has since its filters or its path were changed. */
  held_out_of_scope: column<number | null>(`CASE WHEN sync_status.removals_held > 0 THEN (
      SELECT count(*) FROM sync_missing WHERE ${OF_OUTER_JOB} AND state = 'held' AND reason = 'out_of_scope'
    ) END`),
  /** Why the last complete full walk is not trusted for removals; null if it is. */
  untrusted: column<string | null>('complete._untrusted'),
  /** What the last run has read so far. */
  last_run_trigger: column<string | null>('run.trigger'),
  last_run_pages: column<number | null>('run.pages'),
  /** The open walk: that of the last run, else the latest. `walk_filters`: a JSON object, those of the configuration among them. */
  walk_origin: column<WalkPlan['origin'] | null>('walk._origin'),
  walk_kind: column<WalkPlan['kind'] | null>('walk.kind'),
  walk_filters: column<string | null>('walk.filters'),
  walk_first_page: column<number | null>('walk._first_page'),
  walk_page: column<number | null>('walk.next_page'),
  walk_pages: column<number | null>('walk.pages'),
  walk_rows_seen: column<number | null>('walk.rows_seen'),
  walk_total: column<number | null>('walk.total'),
  walk_updated_at: column<string | null>('walk.updated_at'),
  /** Runs that went on with it, read pages, and stopped where they had begun: other pages come, and this one does not. */
  walk_stops: column<number>(
    `(
      SELECT count(*) FROM sync_runs
      WHERE ${OF_OUTER_JOB} AND trigger <> 'refresh' AND walk_id = walk.id AND status = 'failed' AND pages > 0 AND first_page = walk.next_page
    )`,
    0,
  ),
  /** What its process does: the `trigger` of its run, or `verify`; null: nothing, or it is about to begin. */
  work: column<Trigger | 'verify' | null>(`CASE
      WHEN job.verifying = 1 THEN 'verify'
      WHEN latest.status = 'running' THEN latest.trigger
      WHEN walked.status = 'running' THEN walked.trigger
    END`),
  /** A page that it asks for again: when that failed first, when it is asked for next, and how it failed last. */
  retry_since: column<string | null>('job.retry_since'),
  retry_until: column<string | null>('job.retry_until'),
  retry_error: column<string | null>('job.retry_error'),
  /** What its budgets wait for, or waited for last, and until when. */
  waiting_for: column<string | null>(`(
      SELECT CASE WHEN waiting_until > closed_until THEN waiting_for ELSE 'the server takes no more requests for now' END
      ${OF_BUDGET}
      ORDER BY CASE WHEN waiting_until > closed_until THEN waiting_until ELSE closed_until END DESC
      LIMIT 1
    )`),
  waiting_until: column<string | null>(
    `(SELECT max(CASE WHEN waiting_until > closed_until THEN waiting_until ELSE closed_until END) ${OF_BUDGET})`,
  ),
  /** End of the last run by schedule or by hand whose process was not killed. */
  last_sync_finished_at: column<string | null>('attempt.finished_at'),
  /** Start of the first such run since then; null: none began. */
  tried_since: column<string | null>(
    `(SELECT min(started_at) FROM sync_runs WHERE ${OF_OUTER_JOB} AND ${BY_PLAN} AND id > coalesce(attempt.id, 0))`,
  ),
}

type Details = { [Name in keyof typeof DETAILS]: (typeof DETAILS)[Name]['none'] }

/** What `status` knows of a list. */
export interface StatusRow extends ListRow, Details {
  /** Whether a process works on it now; null if this user cannot tell. */
  running: boolean | null
}

/** All lists that `sync_status` shows, by organization and collection. `living`: the owners that live. */
function* statusRows(living: ReadonlySet<string>): Rule<StatusRow[]> {
  const rows = yield* all<ListRow & Details>(STATUS)
  return rows.map((row) => {
    const running = row.owner !== null && living.has(row.owner)
    // What a process that died has left is no longer true.
    const work = running ? {} : { work: null, retry_since: null, retry_until: null, retry_error: null }
    return { ...row, ...work, running }
  })
}

const STATUS = `
  SELECT
    sync_status.*,
    ${Object.entries(DETAILS)
      .map(([name, { sql }]) => `${sql} AS ${name}`)
      .join(',\n    ')}
  FROM sync_status
  JOIN sync_jobs AS job USING (organization_id, collection)
  JOIN sync_organizations AS organization ON organization.id = job.organization_id
  LEFT JOIN sync_refused_tokens AS token ON token.fingerprint = organization.last_fingerprint
  ${JOIN_LAST_RUN}
  ${joinLast('sync_runs', 'attempt', `${BY_PLAN} AND finished_at IS NOT NULL AND _died = 0`)}
  ${JOIN_COMPLETE}
  ${joinLast('sync_walks', 'open', "status = 'open'")}
  LEFT JOIN sync_walks AS walk
    ON walk.id = coalesce((SELECT id FROM sync_walks WHERE id = run.walk_id AND status = 'open'), open.id)
  ORDER BY organization.name, job.collection
`

const NEVER_SYNCED = Object.fromEntries(
  Object.entries(DETAILS).map(([name, { none }]) => [name, none]),
) as unknown as Details

/** The row of a configured list of which nothing is in the mirror yet. */
export function neverSynced(organization: { id: string; name: string }, collection: string): StatusRow {
  return {
    ...LIST,
    ...NEVER_SYNCED,
    organization_id: organization.id,
    organization: organization.name,
    collection,
    running: false,
  }
}

/** What `status` knows of a mirror, all of one moment. */
export interface MirrorFacts {
  jobs: readonly StatusRow[]
  daemons: readonly DaemonRecord[]
  misfits: readonly MisfitColumn[]
  /** Why nothing was published when that was tried last; null: it was. */
  unpublished: string | null
}

/** `now`: of the mirror. Call it in a transaction. */
export function* storedFacts(isAlive: IsAlive, now: number): Rule<MirrorFacts> {
  return {
    jobs: yield* statusRows(yield* livingOwners(isAlive, now)),
    daemons: (yield* daemons(isAlive, now)).map(({ name: _name, ...daemon }) => daemon),
    misfits: yield* misfitColumns(),
    unpublished: yield* publishFailure(),
  }
}

/** A column NAME__text with values that did not fit. */
export interface MisfitColumn {
  collection: string
  column: string
  /** Live rows with a value in it. */
  rows: number
}

export function* misfitColumns(): Rule<MisfitColumn[]> {
  const known = yield* all<Omit<MisfitColumn, 'rows'>>(
    `SELECT collection, "column" FROM sync_known_columns WHERE role = 'text' ORDER BY collection, "column"`,
  )
  const found: MisfitColumn[] = []
  for (const { collection, column: name } of known) {
    const { rows } = yield* only<{ rows: number }>(
      `SELECT count(*) AS rows FROM ${quoted(collection)} WHERE ${quoted(name)} IS NOT NULL`,
    )
    if (rows > 0) found.push({ collection, column: name, rows })
  }
  return found
}
