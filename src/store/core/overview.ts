import { OF_OUTER_JOB } from './jobs.ts'
import { all, type Dialect, msOf, type Rule, type StoredTime, timeOf } from './sql.ts'

// What the status page shows, beside `status`.

/** The last runs of a job. */
export interface RunsShown {
  organization_id: string
  collection: string
  /** Of RUN_MARK, the latest run first. */
  marks: string
  /** How long the last walk that ended took, and the last refresh; null if none has. */
  seconds: number | null
  refresh_seconds: number | null
}

/** Runs that are shown of a job. */
const MOST_RUNS = 30

const LETTER = `
  CASE
    WHEN status = 'failed' THEN 'f'
    WHEN status = 'running' THEN 'r'
    WHEN status = 'interrupted' THEN 'i'
    WHEN error_code IS NOT NULL THEN 'h'
    ELSE 's'
  END`

/**
 * A letter for each run of `sync_runs`: `s` succeeded, `h` succeeded with removals held back, `f` failed, `i` interrupted, `r`
 * running; a capital one for a refresh.
 */
const RUN_MARK = `CASE trigger WHEN 'refresh' THEN upper(${LETTER}) ELSE ${LETTER} END`

// One text per job: 30,000 rows for a thousand jobs would block the event loop five times as long. A query for each job, which uses the index: a
// window function would read all lines that `keepRuns` keeps.
function lastRunsSql({ joinFirst }: Dialect): string {
  const last = (as: string, which: string) =>
    joinFirst('sync_runs', as, `${OF_OUTER_JOB} AND finished_at IS NOT NULL AND ${which}`, 'id DESC')
  return `
    SELECT
      job.organization_id,
      job.collection,
      (
        SELECT string_agg(mark, '' ORDER BY id DESC)
        FROM (SELECT id, ${RUN_MARK} AS mark FROM sync_runs WHERE ${OF_OUTER_JOB} ORDER BY id DESC LIMIT ${MOST_RUNS}) AS shown
      ) AS marks,
      walked.started_at AS "walkFrom",
      walked.finished_at AS "walkTo",
      refreshed.started_at AS "refreshFrom",
      refreshed.finished_at AS "refreshTo"
    FROM sync_jobs AS job
    ${last('walked', "trigger <> 'refresh'")}
    ${last('refreshed', "trigger = 'refresh'")}
  `
}

/** The last runs of every job. */
export function* runsShown(dialect: Dialect): Rule<RunsShown[]> {
  type Times = Record<'walkFrom' | 'walkTo' | 'refreshFrom' | 'refreshTo', StoredTime | null>
  const rows = yield* all<
    Pick<RunsShown, 'organization_id' | 'collection'> & { marks: string | null } & Times
  >(lastRunsSql(dialect))
  return rows.map(({ marks, walkFrom, walkTo, refreshFrom, refreshTo, ...job }) => ({
    ...job,
    marks: marks ?? '',
    seconds: secondsBetween(walkFrom, walkTo),
    refresh_seconds: secondsBetween(refreshFrom, refreshTo),
  }))
}

function secondsBetween(from: StoredTime | null, to: StoredTime | null): number | null {
  return from === null || to === null ? null : (msOf(to) - msOf(from)) / 1000
}

/** A column that came after the first walk of its collection. */
export interface NewColumn {
  collection: string
  column: string
  path: string
  type: string
  first_seen_at: string
}

/** New columns that are shown. */
const MOST_COLUMNS = 100

/** The columns of a collection's first hour came with its first walk. Milliseconds. */
const FIRST_MS = 3_600_000

/** The columns that came since a time (ISO 8601), latest first, without those of a collection's first hour. */
export function* newColumns(since: string): Rule<NewColumn[]> {
  const found = yield* all<Omit<NewColumn, 'first_seen_at'> & Record<'first_seen_at' | 'first', StoredTime>>(
    `
      SELECT
        collection, "column", path, type, first_seen_at,
        (SELECT min(first_seen_at) FROM sync_known_columns WHERE collection = found.collection) AS first
      FROM sync_known_columns AS found
      WHERE first_seen_at >= :since
      ORDER BY first_seen_at DESC, collection, "column"
    `,
    { since },
  )
  return found
    .filter(({ first_seen_at: at, first }) => msOf(at) > msOf(first) + FIRST_MS)
    .slice(0, MOST_COLUMNS)
    .map(({ first: _first, ...column }) => ({ ...column, first_seen_at: timeOf(column.first_seen_at) }))
}

/** What a budget is known to allow; `known` as `api/rate` stores it. */
export interface StoredGate {
  scope: string
  known: string | null
}

export interface MirrorSize {
  bytes: number
  /** Null: the mirror is not a file. */
  walBytes: number | null
  /** That this user may use on the mirror's disk; null if the system does not say. */
  freeBytes: number | null
}

/** What the status page shows of the runs, budgets and columns. `newSince`: from when on a column is new; epoch milliseconds. */
export function* overviewOf(dialect: Dialect, newSince: number) {
  const used = yield* all<{ id: string; token: string | null }>(
    'SELECT id, last_fingerprint AS token FROM organizations',
  )
  return {
    runs: yield* runsShown(dialect),
    gates: yield* all<StoredGate>('SELECT scope, known FROM sync_gates'),
    /** Which token, by its fingerprint, each organization used last. Keep it out of all output. */
    tokensUsed: new Map(used.map(({ id, token }) => [id, token])),
    newColumns: yield* newColumns(timeOf(newSince)),
  }
}
