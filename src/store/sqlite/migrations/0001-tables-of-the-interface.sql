-- The tables of the public interface. Comments in the statements stay in the file's schema, where analysts see them.

CREATE TABLE organizations (
  id TEXT NOT NULL PRIMARY KEY,
  name TEXT NOT NULL,
  configured INTEGER NOT NULL /* 0: no longer in the configuration */,
  held_since TEXT /* when the API refused this organization's token */,
  held_reason TEXT,
  held_fingerprint TEXT /* of the refused token, salted: another token lifts the hold */,
  last_fingerprint TEXT /* of the token that was used last */
) STRICT;

CREATE TABLE sync_collections (
  name TEXT NOT NULL PRIMARY KEY,
  key TEXT NOT NULL /* JSON list of the key's paths */
) STRICT;

CREATE TABLE sync_jobs (
  organization_id TEXT NOT NULL,
  collection TEXT NOT NULL,
  configured INTEGER NOT NULL,
  rows INTEGER NOT NULL DEFAULT 0 /* live ones */,
  removals_held INTEGER NOT NULL DEFAULT 0,
  owner TEXT /* the process that works on it: the name of its lock file beside the mirror */,
  PRIMARY KEY (organization_id, collection)
) STRICT, WITHOUT ROWID;

CREATE TABLE sync_runs (
  id INTEGER PRIMARY KEY,
  walk_id INTEGER,
  organization_id TEXT NOT NULL,
  collection TEXT NOT NULL,
  trigger TEXT NOT NULL /* schedule, manual, backfill */,
  status TEXT NOT NULL /* running, succeeded, failed, interrupted */,
  started_at TEXT NOT NULL,
  finished_at TEXT,
  first_page INTEGER /* the page after the last one that the walk had written */,
  pages INTEGER NOT NULL DEFAULT 0,
  rows_seen INTEGER NOT NULL DEFAULT 0,
  rows_added INTEGER NOT NULL DEFAULT 0,
  rows_changed INTEGER NOT NULL DEFAULT 0,
  rows_removed INTEGER NOT NULL DEFAULT 0,
  requests INTEGER NOT NULL DEFAULT 0,
  retries INTEGER NOT NULL DEFAULT 0,
  rate_limit_hits INTEGER NOT NULL DEFAULT 0,
  rate_limit_wait_ms INTEGER NOT NULL DEFAULT 0,
  error_code TEXT,
  error_message TEXT
) STRICT;

CREATE INDEX sync_runs_by_job ON sync_runs (organization_id, collection, id);

CREATE TABLE sync_walks (
  id INTEGER PRIMARY KEY,
  organization_id TEXT NOT NULL,
  collection TEXT NOT NULL,
  kind TEXT NOT NULL /* full, partial */,
  filters TEXT NOT NULL /* JSON object, its names in order */,
  status TEXT NOT NULL /* open, complete, abandoned */,
  next_page INTEGER /* the page after the last one written */,
  pages INTEGER NOT NULL DEFAULT 0,
  rows_seen INTEGER NOT NULL DEFAULT 0 /* distinct items */,
  total INTEGER,
  passes INTEGER NOT NULL DEFAULT 1,
  coverage TEXT /* steady, repaired, drifted */,
  started_at TEXT NOT NULL,
  updated_at TEXT NOT NULL,
  finished_at TEXT,
  origin TEXT NOT NULL /* sync, backfill: who may go on with it */,
  path TEXT NOT NULL,
  first_page INTEGER NOT NULL DEFAULT 1,
  account TEXT NOT NULL /* JSON: what coverage is told from */
) STRICT;

CREATE INDEX sync_walks_by_job ON sync_walks (organization_id, collection, status, id);

CREATE TABLE sync_pages (
  walk_id INTEGER NOT NULL,
  ordinal INTEGER NOT NULL /* of the answer within its walk */,
  pass INTEGER NOT NULL,
  page INTEGER NOT NULL,
  total INTEGER,
  keys TEXT NOT NULL /* JSON list, in the order of the list */,
  read_at TEXT NOT NULL,
  PRIMARY KEY (walk_id, ordinal)
) STRICT, WITHOUT ROWID;

CREATE TABLE sync_columns (
  collection TEXT NOT NULL,
  "column" TEXT NOT NULL,
  path TEXT NOT NULL,
  type TEXT NOT NULL,
  first_seen_at TEXT NOT NULL,
  last_changed_at TEXT NOT NULL,
  role TEXT NOT NULL /* key, value, text: beside a column whose type did not fit */,
  wide INTEGER NOT NULL DEFAULT 0 /* holds a whole number that REAL would round */,
  PRIMARY KEY (collection, "column")
) STRICT;

CREATE TABLE sync_view_columns (
  view TEXT NOT NULL,
  array_column TEXT NOT NULL,
  "column" TEXT NOT NULL,
  path TEXT NOT NULL,
  type TEXT NOT NULL,
  holds TEXT NOT NULL /* what its type was chosen for */,
  PRIMARY KEY (view, "column")
) STRICT;

CREATE TABLE sync_rejects (
  organization_id TEXT NOT NULL,
  collection TEXT NOT NULL,
  page INTEGER NOT NULL,
  reason TEXT NOT NULL,
  json TEXT NOT NULL,
  seen_at TEXT NOT NULL,
  fingerprint TEXT NOT NULL /* of json */,
  PRIMARY KEY (organization_id, collection, fingerprint)
) STRICT, WITHOUT ROWID;

CREATE TABLE sync_gates (
  scope TEXT NOT NULL PRIMARY KEY /* a salted fingerprint of the token, an organization, or all */,
  closed_until TEXT NOT NULL
) STRICT;

CREATE TABLE sync_settings (
  name TEXT NOT NULL PRIMARY KEY,
  value TEXT NOT NULL
) STRICT;
