-- DuckDB reads a column of a view that has no declared type as bytes; a CAST declares one.

DROP VIEW sync_status;

CREATE VIEW sync_status AS
SELECT
  job.organization_id,
  organizations.name AS organization,
  job.collection,
  job.rows,
  walk.started_at AS as_of,
  walk.finished_at AS last_complete_at,
  walk.coverage,
  walk.expected_missed,
  CAST(max(walk.started_at, coalesce(job.fresh_as_of, '')) AS TEXT) AS fresh_as_of,
  job.newest,
  run.started_at AS last_run_at,
  run.status AS last_run_status,
  run.error_code,
  job.removals_held
FROM sync_jobs AS job
JOIN organizations ON organizations.id = job.organization_id
LEFT JOIN sync_walks AS walk ON walk.id = (
  SELECT id
  FROM sync_walks
  WHERE organization_id = job.organization_id AND collection = job.collection AND status = 'complete' AND kind = 'full'
  ORDER BY id DESC
  LIMIT 1
)
-- A refresh that succeeded does not hide how the last walk ended; one that failed counts until a later one succeeds.
LEFT JOIN sync_runs AS run ON run.id = max(
  coalesce((
    SELECT max(id) FROM sync_runs
    WHERE organization_id = job.organization_id AND collection = job.collection AND trigger <> 'refresh'
  ), 0),
  coalesce((
    SELECT iif(status = 'failed', id, 0) FROM sync_runs
    WHERE organization_id = job.organization_id AND collection = job.collection
    ORDER BY id DESC
    LIMIT 1
  ), 0)
)
WHERE job.configured = 1 OR job.rows > 0;
