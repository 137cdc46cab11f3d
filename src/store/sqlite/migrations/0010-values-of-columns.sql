-- How many rows hold a value in each column, and how many one that does not fit it. `sync_columns` becomes a view, which adds up
-- what was counted of each job.

ALTER TABLE sync_jobs ADD COLUMN columns_as_of TEXT /* start of the last complete full walk since there is sync_column_counts */;
ALTER TABLE sync_jobs ADD COLUMN columns_run INTEGER /* the last run whose changes are counted there; null: count again */;

CREATE TABLE sync_column_counts (
  organization_id TEXT NOT NULL,
  collection TEXT NOT NULL,
  "column" TEXT NOT NULL,
  filled INTEGER NOT NULL /* live rows with a value in it */,
  misfits INTEGER NOT NULL /* live rows whose value is in NAME__text */,
  misfit TEXT /* the class of one of these: text, boolean, list, fraction, large, fitting (it would fit by now) */,
  last_filled_at TEXT /* of an empty one: start of the last full walk that found a value */,
  emptied INTEGER NOT NULL /* 1: an earlier walk found a value, and there is none any more */,
  PRIMARY KEY (organization_id, collection, "column")
) STRICT, WITHOUT ROWID;

-- For status, which asks each second.
CREATE INDEX sync_column_counts_told ON sync_column_counts (collection, "column") WHERE misfits > 0 OR emptied = 1;

CREATE TABLE sync_known_columns (
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

INSERT INTO sync_known_columns (collection, "column", path, type, first_seen_at, last_changed_at, role, wide)
SELECT collection, "column", path, type, first_seen_at, last_changed_at, role, wide FROM sync_columns ORDER BY rowid;

-- Not renamed: SQLite would let users' views go on with the table.
DROP TABLE sync_columns;
