import { createStatus, type ListFacts, type Status, type StatusFacts } from '../../src/report/status.ts'
import { LIST_COLUMNS, neverSynced, type StatusRow } from '../../src/store/core/status.ts'

export const NOW = Date.parse('2026-11-20T12:00:00.000Z')

export function at(minutesAgo: number): string {
  return new Date(NOW - minutesAgo * 60_000).toISOString()
}

/** What it keeps of a list that no run has begun to read. */
export const NEVER: Partial<StatusRow> = { as_of: null, last_run_at: null, last_sync_finished_at: null }

/** What the mirror keeps of a list whose last run failed. */
export function failedBy(code = 'NETWORK', message = 'away'): Partial<StatusRow> {
  return {
    failing_since: at(30),
    failing_code: code,
    failing_message: message,
    last_run_status: 'failed',
    error_code: code,
  }
}

/** A list whose token was refused, one whose removals are held back, and one that a walk of a schedule reads. */
export const TOKEN: Partial<StatusRow> = { held_since: at(9), held_reason: 'HTTP 401' }
export const HELD: Partial<StatusRow> = { removals_held: 300 }
export const RUNNING: Partial<StatusRow> = {
  running: true,
  last_run_at: at(1),
  last_run_status: 'running',
  last_run_pages: 6,
  work: 'schedule',
  walk_origin: 'sync',
  walk_page: 8,
  walk_pages: 7,
  walk_rows_seen: 14,
  walk_total: 20,
}

/** A `start`, which runs for 90 minutes. */
export const daemon = (pid: number, running = true, outdated = false) => ({
  pid,
  since: at(90),
  running,
  outdated,
})

/** A list that was read five minutes ago, unless `changed` says otherwise. */
export function listOf(
  organization: string,
  changed: Partial<StatusRow> = {},
  facts: Partial<ListFacts> = {},
): ListFacts {
  const id = `00000000-0000-4000-8000-${organization.padEnd(12, '0').slice(0, 12)}`
  const row: StatusRow = {
    ...neverSynced({ id, name: organization }, changed.collection ?? 'orders'),
    rows: 1500,
    as_of: at(5),
    last_complete_at: at(4),
    coverage: 'steady',
    last_run_at: at(5),
    last_run_status: 'succeeded',
    last_run_trigger: 'schedule',
    last_sync_finished_at: at(4),
    ...changed,
  }
  const plan = { schedule: '*/15 * * * *', nextRunAt: NOW + 600_000, dueAt: null }
  return { row, plan, tokenPlace: null, ...facts }
}

/** What `status` says of these lists, beside a `start` that runs. */
export function statusOf(lists: readonly ListFacts[], more: Partial<StatusFacts> = {}): Status {
  return createStatus({
    database: '/data/mirror.db',
    config: '/etc/admin-mirror.yaml',
    unusable: null,
    unpublished: null,
    isConfigLost: false,
    maxAge: null,
    fresh: null,
    misfits: [],
    columns: LIST_COLUMNS,
    now: NOW,
    lists,
    daemons: [daemon(1)],
    ...more,
  })
}
