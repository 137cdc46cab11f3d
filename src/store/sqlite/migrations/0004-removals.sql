-- Rows that leave the list are removed, once walks have missed them.

CREATE TABLE sync_missing (
  organization_id TEXT NOT NULL,
  collection TEXT NOT NULL,
  mark TEXT NOT NULL /* the key, as sync_pages has it */,
  state TEXT NOT NULL /* missed: by one trusted walk; due: by two, or by one that came in one answer; held: due, and held back */,
  missed_by INTEGER NOT NULL /* the first trusted walk that did not see it */,
  since TEXT NOT NULL /* when that was */,
  reason TEXT NOT NULL /* removed, out_of_scope */,
  PRIMARY KEY (organization_id, collection, mark)
) STRICT, WITHOUT ROWID;

CREATE INDEX sync_missing_by_state ON sync_missing (organization_id, collection, state, missed_by);

CREATE TABLE sync_seen_since (
  walk_id INTEGER NOT NULL /* a full walk that stood open */,
  mark TEXT NOT NULL /* of an item that another walk of its job saw meanwhile */,
  PRIMARY KEY (walk_id, mark)
) STRICT, WITHOUT ROWID;

ALTER TABLE sync_jobs ADD COLUMN held_why TEXT /* brake, empty: why removals were held back */;
ALTER TABLE sync_jobs ADD COLUMN judged_walk INTEGER /* the walk that sync_missing is being filled by; null: none is */;
ALTER TABLE sync_jobs ADD COLUMN scope_path TEXT /* of the list that its last trusted walk read */;
ALTER TABLE sync_jobs ADD COLUMN scope_filters TEXT;
ALTER TABLE sync_jobs ADD COLUMN scope_mixed INTEGER NOT NULL DEFAULT 0 /* 1: since then pages of another list were written */;

ALTER TABLE sync_walks ADD COLUMN untrusted TEXT /* why nothing is removed on the word of a complete full walk; null: it is trusted */;
ALTER TABLE sync_walks ADD COLUMN new_rejects INTEGER NOT NULL DEFAULT 0 /* rejected items that had never come before */;

-- Whether an open walk met any is not known.
UPDATE sync_walks SET new_rejects = 1 WHERE status = 'open';

UPDATE sync_jobs
SET (scope_path, scope_filters) = (
  SELECT path, filters
  FROM sync_walks
  WHERE organization_id = sync_jobs.organization_id AND collection = sync_jobs.collection AND kind = 'full' AND status = 'complete'
  ORDER BY id DESC
  LIMIT 1
);

-- Of rows that walks of another list wrote none was ever removed.
UPDATE sync_jobs
SET scope_mixed = 1
WHERE EXISTS (
  SELECT 1
  FROM sync_walks
  WHERE
    organization_id = sync_jobs.organization_id
    AND collection = sync_jobs.collection
    AND kind = 'full'
    AND (path <> scope_path OR filters <> scope_filters)
);
