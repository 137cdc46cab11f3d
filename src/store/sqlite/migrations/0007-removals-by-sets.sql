-- One statement finds what a walk missed, from the page ledger: while the walk runs nothing is written for it.

CREATE TABLE _missing_aside AS SELECT * FROM sync_missing;
CREATE TABLE _jobs_aside AS SELECT * FROM sync_jobs;

-- A walk may be judged again: it then starts from what the walks before it missed.
DELETE FROM _missing_aside
WHERE state IN ('missed', 'due') AND (organization_id, collection, missed_by) IN (
  SELECT organization_id, collection, judged_walk FROM sync_jobs
);

DROP TABLE sync_missing;

CREATE TABLE sync_missing (
  organization_id TEXT NOT NULL,
  collection TEXT NOT NULL,
  key TEXT NOT NULL /* as sync_pages has it */,
  state TEXT NOT NULL /* missed: by one trusted walk; removable: by two, or by one that came in one answer; held: removable, and held back */,
  missed_by INTEGER NOT NULL /* the first trusted walk that did not see it */,
  since TEXT NOT NULL /* when that was */,
  reason TEXT NOT NULL /* removed, out_of_scope */,
  PRIMARY KEY (organization_id, collection, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX sync_missing_by_state ON sync_missing (organization_id, collection, state, missed_by);

INSERT INTO sync_missing (organization_id, collection, key, state, missed_by, since, reason)
SELECT organization_id, collection, mark, iif(state = 'due', 'removable', state), missed_by, since, reason
FROM _missing_aside;

DROP TABLE _missing_aside;

-- The ledger may no longer have what other walks saw during these open walks, so they are not trusted.
UPDATE sync_walks
SET untrusted = 'before an update of admin-mirror it was interrupted, and another walk read the list meanwhile'
WHERE status = 'open' AND id IN (SELECT walk_id FROM sync_seen_since);

DROP TABLE sync_seen_since;

DROP TABLE sync_jobs;

CREATE TABLE sync_jobs (
  organization_id TEXT NOT NULL,
  collection TEXT NOT NULL,
  configured INTEGER NOT NULL,
  rows INTEGER NOT NULL DEFAULT 0 /* live ones */,
  removals_held INTEGER NOT NULL DEFAULT 0,
  held_why TEXT /* brake, empty: why removals were held back */,
  owner TEXT /* the process that works on it: the name of its lock file beside the mirror */,
  scope_path TEXT /* of the list that its last trusted walk read */,
  scope_filters TEXT,
  scope_mixed INTEGER NOT NULL DEFAULT 0 /* 1: since then pages of another list were written */,
  PRIMARY KEY (organization_id, collection)
) STRICT, WITHOUT ROWID;

INSERT INTO sync_jobs (
  organization_id, collection, configured, rows, removals_held, held_why, owner, scope_path, scope_filters, scope_mixed
)
SELECT
  organization_id, collection, configured, rows, removals_held, held_why, owner, scope_path, scope_filters, scope_mixed
FROM _jobs_aside;

DROP TABLE _jobs_aside;

-- The reasons for asking a page again, and the fields of a walk's state, have plainer names.

CREATE TABLE _pages_aside AS SELECT * FROM sync_pages;

DROP TABLE sync_pages;

CREATE TABLE sync_pages (
  walk_id INTEGER NOT NULL,
  ordinal INTEGER NOT NULL /* of the answer within its walk */,
  pass INTEGER NOT NULL,
  page INTEGER NOT NULL,
  total INTEGER,
  keys TEXT NOT NULL /* JSON list, in the order of the list */,
  read_at TEXT NOT NULL,
  why TEXT NOT NULL /* forward, back, reread, overlap, look, spot-check, front, sample */,
  places TEXT /* JSON list beside keys, for a page that was asked again: [ordinal, position] of each key that was new, null for the others */,
  PRIMARY KEY (walk_id, ordinal)
) STRICT;

INSERT INTO sync_pages (walk_id, ordinal, pass, page, total, keys, read_at, why, places)
SELECT
  walk_id, ordinal, pass, page, total, keys, read_at,
  CASE why WHEN 'again' THEN 'reread' WHEN 'still' THEN 'spot-check' ELSE why END,
  places
FROM _pages_aside;

DROP TABLE _pages_aside;

-- Each of these names occurs in that JSON as a key, or a reason, only.
UPDATE sync_walks SET account = replace(account, '"account":{', '"state":{') WHERE status = 'open';
UPDATE sync_walks SET account = replace(account, '"edge":', '"frontier":') WHERE status = 'open';
UPDATE sync_walks SET account = replace(account, '"wanderers":', '"relocated":') WHERE status = 'open';
UPDATE sync_walks SET account = replace(account, '"unpaid":', '"unexplained":') WHERE status = 'open';
UPDATE sync_walks SET account = replace(account, '"owed":', '"carried":') WHERE status = 'open';
UPDATE sync_walks SET account = replace(account, '"stale":', '"pagesWithoutNews":') WHERE status = 'open';
UPDATE sync_walks SET account = replace(account, '"crossed":', '"repeatedAcrossPages":') WHERE status = 'open';
UPDATE sync_walks SET account = replace(account, '"still":', '"spotCheck":') WHERE status = 'open';
UPDATE sync_walks SET account = replace(account, '"why":"again"', '"why":"reread"') WHERE status = 'open';
UPDATE sync_walks SET account = replace(account, '"why":"still"', '"why":"spot-check"') WHERE status = 'open';
