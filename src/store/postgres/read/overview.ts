import {
  type LastRuns,
  type MirrorSize,
  MOST_COLUMNS,
  MOST_RUNS,
  type NewColumn,
  RUN_MARK,
  type StoredGate,
} from '../../overview.ts'
import type { Sql } from '../sql.ts'

/** What the status page shows beside `status`. */
export interface ServerOverview {
  runs: LastRuns[]
  gates: StoredGate[]
  /** Which token, by its fingerprint, each organization used last. Keep it out of all output. */
  tokensUsed: Map<string, string | null>
  newColumns: NewColumn[]
  size: MirrorSize
}

/** `since`: from when on a column is new; epoch milliseconds. */
export async function readOverview(sql: Pick<Sql, 'rows'>, since: number): Promise<ServerOverview> {
  const runs = await sql.rows<LastRuns>(LAST_RUNS_SQL)
  const gates = await sql.rows<StoredGate>('SELECT scope, known FROM sync_gates')
  const tokens = await sql.rows<{ id: string; token: string | null }>(
    'SELECT id, last_fingerprint AS token FROM organizations',
  )
  const columns = await sql.rows<Omit<NewColumn, 'first_seen_at'> & { first_seen_at: number }>(
    NEW_COLUMNS_SQL,
    [new Date(since).toISOString()],
  )
  const [size] = await sql.rows<{ bytes: number }>(SIZE_SQL)
  return {
    runs,
    gates,
    tokensUsed: new Map(tokens.map(({ id, token }) => [id, token])),
    newColumns: columns.map((one) => ({ ...one, first_seen_at: new Date(one.first_seen_at).toISOString() })),
    size: { bytes: size?.bytes ?? 0, walBytes: null, freeBytes: null },
  }
}

function lastSeconds(trigger: string): string {
  return `(
    SELECT extract(epoch FROM finished_at - started_at)::double precision AS seconds
    FROM sync_runs
    WHERE organization_id = job.organization_id AND collection = job.collection AND finished_at IS NOT NULL AND trigger ${trigger}
    ORDER BY id DESC
    LIMIT 1
  )`
}

const LAST_RUNS_SQL = `
  SELECT job.organization_id, job.collection, coalesce(shown.marks, '') AS marks, walked.seconds, refreshed.seconds AS refresh_seconds
  FROM sync_jobs AS job
  LEFT JOIN LATERAL (
    SELECT string_agg(mark, '' ORDER BY id DESC) AS marks
    FROM (
      SELECT id, ${RUN_MARK} AS mark
      FROM sync_runs
      WHERE organization_id = job.organization_id AND collection = job.collection
      ORDER BY id DESC
      LIMIT ${MOST_RUNS}
    ) AS run
  ) AS shown ON true
  LEFT JOIN LATERAL ${lastSeconds("<> 'refresh'")} AS walked ON true
  LEFT JOIN LATERAL ${lastSeconds("= 'refresh'")} AS refreshed ON true
`

const NEW_COLUMNS_SQL = `
  SELECT collection, "column", path, type, first_seen_at
  FROM sync_known_columns AS found
  WHERE first_seen_at >= $1
    AND first_seen_at > (
      SELECT min(first_seen_at) FROM sync_known_columns WHERE collection = found.collection
    ) + interval '1 hour'
  ORDER BY first_seen_at DESC, collection, "column"
  LIMIT ${MOST_COLUMNS}
`

const SIZE_SQL = `
  SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint AS bytes
  FROM pg_class
  WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'
`
