import {
  BACKFILLS_SQL,
  type BackfillRow,
  type JobRow,
  type LateColumn,
  type StatusRow,
  statusOf,
  statusSql,
  WAITS_UNTIL,
} from '../../status.ts'
import { isOwnerAlive } from '../leases.ts'
import type { Connection } from '../sql.ts'

/**
 * All jobs that `sync_status` shows, by organization and collection. `own`: the name of this process's lock file, if it has
 * one; it lives, and must not be opened here.
 */
export function readStatus(connection: Connection, file: string, own: string | null = null): StatusRow[] {
  const statement = connection.prepare(
    sqlFor(columnsOf(connection, 'sync_status'), columnsOf(connection, 'sync_jobs')),
  )
  const read = () => statement.all() as JobRow[]
  const first = read()
  const states = new Map<string, boolean | null>(own === null ? [] : [[own, true]])
  for (const { owner } of first)
    if (owner !== null && !states.has(owner)) states.set(owner, isOwnerAlive(file, owner))
  // An owner without a lock may have finished after its name was read: read what it left.
  const rows = [...states.values()].includes(false) ? read() : first
  const backfills = connection.prepare(
    `${BACKFILLS_SQL} AND organization_id = ? AND collection = ? ORDER BY id`,
  )
  return rows.map((row) => {
    const { owner, organization_id: organization, collection } = row
    // An owner that took the job after the first reading lives.
    const running = owner !== null && (states.has(owner) ? (states.get(owner) ?? null) : true)
    return statusOf(row, running, backfills.all(organization, collection) as BackfillRow[])
  })
}

function columnsOf(connection: Connection, view: string): Set<string> {
  const names = connection.prepare('SELECT name FROM pragma_table_info(?)').pluck().all(view) as string[]
  return new Set(names)
}

/** Of a mirror that no command of this version has written yet, the last run alone is known. */
const BEFORE: Record<LateColumn, string> = {
  failing_since: "CASE run.status WHEN 'failed' THEN run.started_at END",
  failing_by: "CASE run.status WHEN 'failed' THEN iif(run.trigger = 'refresh', 'refresh', 'walk') END",
  failing_code: "CASE run.status WHEN 'failed' THEN run.error_code END",
  failing_message: "CASE run.status WHEN 'failed' THEN run.error_message END",
  verifying: '0',
  retry_since: 'NULL',
  retry_until: 'NULL',
  retry_error: 'NULL',
}

/** Columns that not every version of `sync_status` and `sync_jobs` has are null. */
function sqlFor(columns: ReadonlySet<string>, ofJobs: ReadonlySet<string>): string {
  return statusSql({
    fresh: (name) => (columns.has(name) ? `sync_status.${name}` : `NULL AS ${name}`),
    late: (name) => (ofJobs.has(name) ? `job.${name}` : BEFORE[name]),
    refreshedEvery: columns.has('newest') ? "job.refresh ->> '$.interval'" : 'NULL',
    joinFirst: ({ table, as, where, order }) =>
      `LEFT JOIN ${table} AS ${as} ON ${as}.id = (SELECT id FROM ${table} WHERE ${where} ORDER BY ${order} LIMIT 1)`,
    joinGate: `
      LEFT JOIN sync_gates AS gate ON gate.scope = (
        SELECT scope
        FROM sync_gates
        WHERE scope IN ('all', job.organization_id, organizations.last_fingerprint)
        ORDER BY ${WAITS_UNTIL} DESC
        LIMIT 1
      )`,
  })
}
