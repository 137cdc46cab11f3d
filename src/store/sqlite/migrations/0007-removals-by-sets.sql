-- What a walk missed is found by one statement from the page ledger: nothing is noted for it on the way.

CREATE TABLE _missing_aside AS SELECT * FROM sync_missing;
CREATE TABLE _jobs_aside AS SELECT * FROM sync_jobs;

-- A walk that is judged again begins from what the walks before it missed.
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

-- What other walks saw meanwhile may be pruned from the ledger already, so these open walks are not trusted.
UPDATE sync_walks
SET new_rejects = new_rejects + 1
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
