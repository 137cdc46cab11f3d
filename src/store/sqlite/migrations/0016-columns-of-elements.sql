-- The columns of views of arrays follow the rules of those of tables, and are in `sync_columns`, too. The views are made anew with this
-- step; `wide` of columns of texts is worked out for what is there.

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

DROP VIEW sync_columns;
CREATE VIEW sync_columns AS
SELECT
  CAST(known.collection AS TEXT) AS collection,
  CAST(known."column" AS TEXT) AS "column",
  CAST(known.path AS TEXT) AS path,
  CAST(known.type AS TEXT) AS type,
  CAST(known.first_seen_at AS TEXT) AS first_seen_at,
  CAST(known.last_changed_at AS TEXT) AS last_changed_at,
  CAST(counted.filled AS INTEGER) AS filled,
  CAST(counted.misfits AS INTEGER) AS misfits,
  CAST(counted.last_filled_at AS TEXT) AS last_filled_at,
  CAST(known.role AS TEXT) AS role,
  CAST(known.wide AS INTEGER) AS wide
FROM (
  SELECT collection, "column", path, type, first_seen_at, last_changed_at, role, wide, 0 AS of_view, rowid AS sequence
  FROM sync_known_columns
  UNION ALL
  SELECT view, "column", path, type, first_seen_at, last_changed_at, role, wide, 1, rowid
  FROM sync_view_columns
) AS known
LEFT JOIN (
  SELECT
    count.collection,
    count."column",
    sum(count.filled) AS filled,
    sum(count.misfits) AS misfits,
    max(CASE WHEN count.filled > 0 THEN job.columns_as_of ELSE count.last_filled_at END) AS last_filled_at
  FROM sync_column_counts AS count
  -- No collection's name has two underscores: `orders__items` is a view of orders.
  JOIN sync_jobs AS job
    ON job.organization_id = count.organization_id AND job.collection = substr(count.collection, 1, instr(count.collection || '__', '__') - 1)
  GROUP BY 1, 2
) AS counted ON counted.collection = known.collection AND counted."column" = known."column"
ORDER BY known.of_view, known.sequence;

-- Counted again at the end of the next full walk.
UPDATE sync_jobs SET columns_run = NULL;
