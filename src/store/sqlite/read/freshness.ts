import type { Connection } from '../sql.ts'
import type { StatusRow } from './status.ts'

type Shown = Pick<
  StatusRow,
  | 'organization_id'
  | 'organization'
  | 'collection'
  | 'rows'
  | 'as_of'
  | 'last_complete_at'
  | 'coverage'
  | 'expected_missed'
  | 'last_run_at'
  | 'last_run_status'
  | 'error_code'
  | 'removals_held'
>

/**
 * All that a published file says of its jobs: what `sync_status` shows. Which process works on them, what it
 * waits for and what comes next is known to the mirror alone.
 */
export function readFreshness(connection: Connection): StatusRow[] {
  const rows = connection
    .prepare('SELECT * FROM sync_status ORDER BY organization, collection')
    .all() as (Shown & Partial<StatusRow>)[]
  return rows.map((row) => ({ ...UNKNOWN, ...row }))
}

const UNKNOWN: Omit<StatusRow, keyof Shown> = {
  configured: 1,
  last_run_trigger: null,
  error_message: null,
  held_why: null,
  fresh_as_of: null,
  newest: null,
  refreshed_every_ms: null,
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
  running: null,
  waiting_for: null,
  waiting_until: null,
  backfills: [],
  last_sync_at: null,
  last_sync_finished_at: null,
  last_run_pages: null,
  last_run_rows_seen: null,
}
