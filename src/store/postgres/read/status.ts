import {
  BACKFILLS_SQL,
  type BackfillRow,
  type JobRow,
  type StatusRow,
  statusOf,
  statusSql,
} from '../../status.ts'
import { lockKey } from '../leases.ts'
import type { Sql } from '../sql.ts'

/** All jobs that `sync_status` shows, by organization and collection; times as text. */
export async function readStatus(
  sql: Pick<Sql, 'rows'>,
  schema: string,
  held: ReadonlySet<string>,
): Promise<StatusRow[]> {
  const rows = await sql.rows<JobRow>(STATUS_SQL)
  const backfills = Map.groupBy(await sql.rows<BackfillRow>(`${BACKFILLS_SQL} ORDER BY id`), jobName)
  return rows.map((row) => {
    const { owner, organization_id: organization, collection } = row
    // A job with a lock has an owner. Of thousands of jobs few have one, and each name of a lock takes a hash.
    const running = owner !== null && held.has(String(lockKey(schema, organization, collection)))
    return statusOf(withTimes(row), running, (backfills.get(jobName(row)) ?? []).map(withTimes))
  })
}

function jobName(of: Pick<BackfillRow, 'organization_id' | 'collection'>): string {
  return `${of.organization_id} ${of.collection}`
}

/** Times come as epoch milliseconds, and are text in the mirror's other kind. */
function withTimes<T extends object>(row: T): T {
  const times = row as Record<string, unknown>
  for (const [name, value] of Object.entries(row))
    if (typeof value === 'number' && /(?:_at|as_of|_since|_until)$/.test(name))
      times[name] = new Date(value).toISOString()
  return row
}

/** The latest end of a budget's pause. */
export async function gateClosedUntil(sql: Pick<Sql, 'rows'>): Promise<string | null> {
  const [row] = await sql.rows<{ at: number | null }>('SELECT max(closed_until) AS at FROM sync_gates')
  return row?.at == null ? null : new Date(row.at).toISOString()
}

const STATUS_SQL = statusSql({
  fresh: (name) => `sync_status.${name}`,
  late: (name) => `job.${name}`,
  refreshedEvery: "(job.refresh::json ->> 'interval')::double precision",
  joinFirst: ({ table, as, where, order }) =>
    `LEFT JOIN LATERAL (SELECT * FROM ${table} WHERE ${where} ORDER BY ${order} LIMIT 1) AS ${as} ON true`,
  // Joined by each name: a search of all budgets for each job would take as many steps as both multiplied.
  joinGate: `
    LEFT JOIN sync_gates AS of_all ON of_all.scope = 'all'
    LEFT JOIN sync_gates AS of_organization ON of_organization.scope = job.organization_id
    LEFT JOIN sync_gates AS of_token ON of_token.scope = organizations.last_fingerprint
    LEFT JOIN LATERAL (
      SELECT *
      FROM (
        VALUES
          (of_all.closed_until, of_all.waiting_until, of_all.waiting_for),
          (of_organization.closed_until, of_organization.waiting_until, of_organization.waiting_for),
          (of_token.closed_until, of_token.waiting_until, of_token.waiting_for)
      ) AS budget (closed_until, waiting_until, waiting_for)
      WHERE closed_until IS NOT NULL
      ORDER BY greatest(closed_until, waiting_until) DESC
      LIMIT 1
    ) AS gate ON true`,
})
