import { type Described, ORGANIZATION_SAYS } from './core/declarations.ts'
import { COLUMNS_VIEW, describedView, STATUS_VIEW } from './core/views.ts'

// What each table and column of ours is, in `sync_help`. Those of a collection are in core/declarations.ts, those of two views in core/views.ts.
// The columns of the API are in `sync_columns`.

/** Of `sync_help` itself. */
export const HELP: Described = [
  'this table: what each table and column of ours is',
  {
    table: 'the name of a table or view',
    column: 'the name of a column; null: the line is about the whole table',
    says: 'what it holds',
  },
]

/** Tables and views that every mirror has, with the columns that people read: only these are in a copy. */
export const OF_THE_MIRROR: Readonly<Record<string, Described>> = {
  organizations: [
    'one row per organization',
    {
      id: 'its UUID, as in _organization_id of all other tables',
      name: 'its short name from the configuration',
      configured: '0: no longer in the configuration; its rows stay until "admin-mirror forget"',
      held_since: 'when the API refused its token; nothing is sent for it since then',
      held_reason: 'why, and what to do',
    },
  ],
  sync_status: describedView(STATUS_VIEW),
  sync_runs: [
    'one row per run: one attempt of one process at a list',
    {
      id: 'a number, growing',
      walk_id: 'the walk that it worked on: sync_walks.id',
      organization_id: 'the UUID of the organization',
      collection: 'the name of the collection',
      trigger: 'schedule, manual, backfill, refresh',
      status: 'running, succeeded, failed, interrupted',
      started_at: 'when it began',
      finished_at: 'when it ended; null while it runs, or if it was killed',
      first_page: 'the page at which it began: the one after the last that the walk had written',
      pages: 'answers read',
      rows_seen: 'items on them, rejects too',
      rows_added: 'new rows written',
      rows_changed: 'changed rows written',
      rows_removed: 'rows that left the list and were removed',
      requests: 'requests sent',
      retries: 'requests sent again after a fault',
      rate_limit_hits: 'answers 429',
      rate_limit_wait_ms: 'milliseconds waited for the rate limit',
      error_code: 'why it failed, in one word',
      error_message: 'the same in a sentence',
    },
  ],
  sync_walks: [
    'one row per walk: one reading of a list, by one run or several',
    {
      id: 'a number, growing',
      organization_id: 'the UUID of the organization',
      collection: 'the name of the collection',
      kind: 'full: the whole list; partial: a backfill with filters or a start page',
      filters: 'JSON: the query parameters that were sent',
      status: 'open, complete, abandoned',
      next_page: 'the page after the last one written; null: none is left',
      pages: 'answers read',
      rows_seen: 'distinct items, rejects too',
      total: 'how many items the list says it has',
      passes: 'how often it was read from the first page',
      coverage: 'as in sync_status',
      started_at: 'when it began',
      updated_at: 'when it last wrote a page',
      finished_at: 'when it was complete or abandoned',
    },
  ],
  sync_columns: describedView(COLUMNS_VIEW),
  sync_rejects: [
    'items that could not be placed: without a usable key, or not an object',
    {
      organization_id: 'the UUID of the organization',
      collection: 'the name of the collection',
      page: 'the page on which it came',
      reason: 'why it has no row',
      json: 'the item as it was sent',
      seen_at: 'when it last came',
    },
  ],
  sync_collections: [
    'one row per collection that has tables here',
    { name: 'its name, and that of its table', key: 'JSON list of the paths of its key' },
  ],
  sync_help: HELP,
}

/** Tables of the program itself. Their columns are internal: each version may have others. */
export const WORKINGS: Readonly<Record<string, string>> = {
  sync_jobs: 'internal: the lists, and which process works on each',
  sync_known_columns: 'internal: the columns of sync_columns',
  sync_column_counts: 'internal: the counts of sync_columns, for each list',
  sync_pages: 'internal: the keys on each page that was read, until its walk is closed',
  sync_missing: 'internal: live rows that the last walk did not see',
  sync_refreshed: 'internal: the keys on pages that refreshes read while a full walk was open',
  sync_view_columns: 'internal: the fields of the elements of arrays',
  sync_gates: 'internal: the budgets of requests',
  sync_shares: 'internal: what refreshes pay for requests',
  sync_seq: 'internal: the greatest seq of each collection',
  sync_settings: 'internal: what the program notes about the mirror',
}

/** Internal columns of the tables that people read. */
export const WORKING_COLUMNS: Readonly<Record<string, string>> = {
  organizations: 'held_fingerprint last_fingerprint',
  sync_runs: 'brief',
  sync_walks: 'origin path first_page account untrusted new_rejects total_off rows_added_before brief',
  sync_columns: 'role wide sequence',
  sync_rejects: 'fingerprint only_refreshed',
}

/** Of each array of objects: `orders__items`. */
export const OF_AN_ARRAY: Described = [
  'one row for each element of an array of objects; the other columns are the fields of the elements',
  {
    _organization_id: ORGANIZATION_SAYS,
    _parent_KEY: 'the key of the item that has the array',
    _index: 'the place in the array, from 0',
  },
]
