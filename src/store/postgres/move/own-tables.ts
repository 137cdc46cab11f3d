import type { MovedColumn, MovedType } from './values.ts'

/** A table of ours that has the same columns in both stores. */
export interface OwnTable {
  name: string
  columns: MovedColumn[]
  order: string
}

/** Columns by type. `sequence` is the row id of the file: the order in which rows were written. */
function table(name: string, types: Partial<Record<MovedType, string>>, order = ''): OwnTable {
  const columns = Object.entries(types).flatMap(([type, names]) =>
    names.split(' ').map((column) => ({ name: column, type: type as MovedType })),
  )
  return { name, columns, order }
}

// What is not here is known to one process, or one machine, alone: owners, daemons, epochs.
export const OWN_TABLES: readonly OwnTable[] = [
  table('organizations', {
    text: 'id name held_reason held_fingerprint last_fingerprint',
    bigint: 'configured',
    timestamptz: 'held_since',
  }),
  table('sync_collections', { text: 'name key' }),
  table('sync_seq', { text: 'collection', bigint: 'seq' }),
  table('sync_jobs', {
    text: 'organization_id collection held_why scope_path scope_filters refresh newest failing_by failing_code failing_message',
    bigint: 'configured rows removals_held scope_mixed rows_added columns_run',
    timestamptz: 'fresh_as_of columns_as_of failing_since',
  }),
  table('sync_runs', {
    text: 'organization_id collection trigger status error_code error_message',
    bigint:
      'id walk_id first_page pages rows_seen rows_added rows_changed rows_removed requests retries rate_limit_hits ' +
      'rate_limit_wait_ms brief',
    timestamptz: 'started_at finished_at',
  }),
  table('sync_walks', {
    text: 'organization_id collection kind filters status coverage origin path account untrusted total_off',
    bigint: 'id next_page pages rows_seen total passes first_page new_rejects brief rows_added_before',
    'double precision': 'expected_missed',
    timestamptz: 'started_at updated_at finished_at',
  }),
  table(
    'sync_pages',
    {
      text: 'keys why places',
      bigint: 'walk_id ordinal pass page total sequence',
      timestamptz: 'read_at',
    },
    'ORDER BY _rowid_',
  ),
  table('sync_rejects', {
    text: 'organization_id collection fingerprint reason json',
    bigint: 'page only_refreshed',
    timestamptz: 'seen_at',
  }),
  table('sync_refreshed', { bigint: 'walk_id', text: 'keys' }),
  table('sync_missing', {
    text: 'organization_id collection key state reason',
    bigint: 'missed_by',
    timestamptz: 'since',
  }),
  table('sync_gates', {
    text: 'scope known waiting_for',
    timestamptz: 'closed_until waiting_until',
  }),
  table('sync_shares', {
    text: 'scope',
    bigint: 'version',
    'double precision': 'level log_price',
    timestamptz: 'at',
  }),
]

/** The columns that count by themselves, which go on behind the highest copied number. */
export const COUNTERS: readonly [table: string, column: string][] = [
  ['sync_runs', 'id'],
  ['sync_walks', 'id'],
  ['sync_pages', 'sequence'],
  ['sync_known_columns', 'sequence'],
  ['sync_view_columns', 'sequence'],
]
