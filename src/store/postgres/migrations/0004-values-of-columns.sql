-- How many rows hold a value in each column, and how many one that does not fit it. `sync_columns` becomes a view, which adds up
-- what was counted of each job.
ALTER TABLE sync_jobs ADD COLUMN columns_as_of timestamptz, ADD COLUMN columns_run bigint;
COMMENT ON COLUMN sync_jobs.columns_as_of IS 'Start of the last complete full walk since there is sync_column_counts.';
COMMENT ON COLUMN sync_jobs.columns_run IS 'The last run whose changes are counted there; null: count again.';

CREATE TABLE sync_column_counts (
  organization_id text,
  collection text,
  "column" text,
  filled bigint NOT NULL,
  misfits bigint NOT NULL,
  misfit text,
  last_filled_at timestamptz,
  emptied bigint NOT NULL,
  PRIMARY KEY (organization_id, collection, "column")
);
CREATE INDEX sync_column_counts_told ON sync_column_counts (collection, "column") WHERE misfits > 0 OR emptied = 1;
COMMENT ON TABLE sync_column_counts IS 'What the last complete full walk of each job left in each column. For status, and for sync_columns.';
COMMENT ON COLUMN sync_column_counts.organization_id IS 'See organizations.';
COMMENT ON COLUMN sync_column_counts.collection IS 'See sync_collections.';
COMMENT ON COLUMN sync_column_counts."column" IS 'Its name in the table.';
COMMENT ON COLUMN sync_column_counts.filled IS 'Live rows with a value in it.';
COMMENT ON COLUMN sync_column_counts.misfits IS 'Live rows whose value is in NAME__text.';
COMMENT ON COLUMN sync_column_counts.misfit IS 'The class of one of these: text, boolean, list, fraction, large, fitting (it would fit by now).';
COMMENT ON COLUMN sync_column_counts.last_filled_at IS 'Of an empty one: start of the last full walk that found a value.';
COMMENT ON COLUMN sync_column_counts.emptied IS '1: an earlier walk found a value, and there is none any more.';

ALTER TABLE sync_columns RENAME TO sync_known_columns;
CREATE VIEW sync_columns AS
SELECT
  known.collection,
  known."column",
  known.path,
  known.type,
  known.first_seen_at,
  known.last_changed_at,
  counted.filled,
  counted.misfits,
  counted.last_filled_at,
  known.role,
  known.wide,
  known.sequence
FROM sync_known_columns AS known
LEFT JOIN (
  SELECT
    count.collection,
    count."column",
    sum(count.filled)::bigint AS filled,
    sum(count.misfits)::bigint AS misfits,
    max(CASE WHEN count.filled > 0 THEN job.columns_as_of ELSE count.last_filled_at END) AS last_filled_at
  FROM sync_column_counts AS count
  JOIN sync_jobs AS job USING (organization_id, collection)
  GROUP BY 1, 2
) AS counted ON counted.collection = known.collection AND counted."column" = known."column";
COMMENT ON VIEW sync_columns IS 'Each discovered column of a collection.';
COMMENT ON COLUMN sync_columns.collection IS 'See sync_collections.';
COMMENT ON COLUMN sync_columns."column" IS 'Its name in the table.';
COMMENT ON COLUMN sync_columns.path IS 'Where its values are in an item: $.customer.email';
COMMENT ON COLUMN sync_columns.type IS 'INTEGER (bigint), REAL (double precision), TEXT (text)';
COMMENT ON COLUMN sync_columns.first_seen_at IS 'When its first value came.';
COMMENT ON COLUMN sync_columns.last_changed_at IS 'When its type changed last.';
COMMENT ON COLUMN sync_columns.filled IS 'Live rows with a value, as of the last complete full walk of each list.';
COMMENT ON COLUMN sync_columns.misfits IS 'Live rows whose value is in NAME__text.';
COMMENT ON COLUMN sync_columns.last_filled_at IS 'Start of the last such walk that found any value.';
COMMENT ON COLUMN sync_columns.role IS 'key, value, text: beside a column whose type did not fit.';
COMMENT ON COLUMN sync_columns.wide IS '1: holds a whole number that REAL would round.';
COMMENT ON COLUMN sync_columns.sequence IS 'The order of the columns.';

-- Who could read the table can read the view, and nobody else.
DO $$
DECLARE
  role text;
BEGIN
  FOR role IN
    SELECT DISTINCT CASE acl.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(acl.grantee)) END
    FROM pg_class AS relation, aclexplode(relation.relacl) AS acl
    WHERE relation.oid = 'sync_columns'::regclass AND acl.grantee <> relation.relowner
  LOOP
    EXECUTE format('REVOKE ALL ON sync_columns FROM %s', role);
  END LOOP;
  FOR role IN
    SELECT DISTINCT CASE acl.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(acl.grantee)) END
    FROM pg_class AS relation, aclexplode(relation.relacl) AS acl
    WHERE relation.oid = 'sync_known_columns'::regclass AND acl.grantee <> relation.relowner AND acl.privilege_type = 'SELECT'
  LOOP
    EXECUTE format('GRANT SELECT ON sync_columns TO %s', role);
  END LOOP;
END
$$;
