-- The columns of views of arrays follow the rules of those of tables. The views are made anew with this step; `wide` of columns of texts is worked out for what is there.

CREATE TABLE sync_former_view_columns AS SELECT * FROM sync_view_columns ORDER BY rowid;

-- Not altered: for DROP COLUMN SQLite reads the views of users, which may be broken.
DROP TABLE sync_view_columns;

CREATE TABLE sync_view_columns (
  view TEXT NOT NULL,
  array_column TEXT NOT NULL,
  "column" TEXT NOT NULL,
  path TEXT NOT NULL,
  type TEXT NOT NULL,
  role TEXT NOT NULL /* value, text: beside a column whose type did not fit */,
  wide INTEGER NOT NULL DEFAULT 0 /* holds a whole number that REAL would round, or a boolean */,
  first_seen_at TEXT NOT NULL,
  last_changed_at TEXT NOT NULL,
  PRIMARY KEY (view, "column")
) STRICT;

INSERT INTO sync_view_columns (view, array_column, "column", path, type, role, wide, first_seen_at, last_changed_at)
SELECT
  former.view,
  former.array_column,
  former."column",
  former.path,
  former.type,
  'value',
  former.holds IN ('wide', 'boolean'),
  coalesce(known.first_seen_at, strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
  coalesce(known.first_seen_at, strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))
FROM sync_former_view_columns AS former
LEFT JOIN sync_known_columns AS known
  ON known.collection = substr(former.view, 1, instr(former.view, '__') - 1) AND known."column" = former.array_column
ORDER BY former.rowid;

DROP TABLE sync_former_view_columns;

ALTER TABLE sync_column_counts ADD COLUMN objects INTEGER NOT NULL DEFAULT 0 /* live rows with an object in place of a value */;

-- Counted again at the end of the next full walk.
UPDATE sync_jobs SET columns_run = NULL;
