import type { StatusRow } from '../../core/status.ts'
import type { Connection } from '../sql.ts'

/** The row of a configured job that is not in the mirror yet. */
export function neverSynced(organization: { id: string; name: string }, collection: string): StatusRow {
  return {
    organization_id: organization.id,
    organization: organization.name,
    collection,
    configured: 1,
    rows: 0,
    as_of: null,
    last_complete_at: null,
    coverage: null,
    expected_missed: null,
    fresh_as_of: null,
    newest: null,
    refreshed_every_ms: null,
    refresh_share: null,
    token: null,
    alarm_since: null,
    changed_since_off: null,
    last_run_at: null,
    last_run_status: null,
    last_run_trigger: null,
    error_code: null,
    error_message: null,
    failing_since: null,
    failing_by: null,
    failing_code: null,
    failing_message: null,
    removals_held: 0,
    held_why: null,
    untrusted: null,
    total_is_wrong: false,
    rows_missed: 0,
    held_since: null,
    held_reason: null,
    walk_origin: null,
    walk_page: null,
    walk_pages: null,
    walk_rows_seen: null,
    walk_total: null,
    walk_started_at: null,
    walk_updated_at: null,
    running: false,
    work: null,
    retry_since: null,
    retry_until: null,
    retry_error: null,
    waiting_for: null,
    waiting_until: null,
    backfills: [],
    last_sync_finished_at: null,
    tried_since: null,
    last_run_pages: null,
    last_run_rows_seen: null,
    last_run_third_at: null,
    last_run_two_thirds_at: null,
    last_run_wait_ms: null,
  }
}

/** What `sync_status` shows. */
type Shown = Pick<StatusRow, 'organization_id' | 'organization' | 'collection'> & Partial<StatusRow>

/**
 * All that a published file says of its jobs. Which process works on them, what it waits for and what comes next is known to
 * the mirror alone.
 */
export function readFreshness(connection: Connection): StatusRow[] {
  const rows = connection
    .prepare('SELECT * FROM sync_status ORDER BY organization, collection')
    .all() as Shown[]
  return rows.map((row) => ({
    ...neverSynced({ id: row.organization_id, name: row.organization }, row.collection),
    running: null,
    ...row,
    // A copy has no more than its last run.
    ...(row.last_run_status === 'failed'
      ? { failing_since: row.last_run_at ?? null, failing_code: row.error_code ?? null }
      : {}),
  }))
}
