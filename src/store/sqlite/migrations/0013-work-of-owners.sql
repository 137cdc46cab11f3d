-- What the owner of a job does that no line of sync_runs tells, for others who look.

ALTER TABLE sync_jobs ADD COLUMN verifying INTEGER NOT NULL DEFAULT 0 /* 1: it compares the list, and writes no run */;
ALTER TABLE sync_jobs ADD COLUMN retry_since TEXT /* when a page failed first that it asks for again; null: none does */;
ALTER TABLE sync_jobs ADD COLUMN retry_until TEXT /* when it asks next */;
ALTER TABLE sync_jobs ADD COLUMN retry_error TEXT /* how the page failed last */;

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
LEFT JOIN sync_runs AS walked ON walked.id = (
  SELECT max(id)
  FROM sync_runs
  WHERE organization_id = job.organization_id AND collection = job.collection AND trigger <> 'refresh'
)
LEFT JOIN sync_runs AS latest ON latest.id = (
  SELECT max(id) FROM sync_runs WHERE organization_id = job.organization_id AND collection = job.collection
)
-- A refresh hides no walk, unless it failed after the end of that walk.
LEFT JOIN sync_runs AS run ON run.id = CASE
  WHEN latest.status = 'failed' AND (walked.id IS NULL OR latest.started_at >= walked.finished_at) THEN latest.id
  ELSE walked.id
END
WHERE job.configured = 1 OR job.rows > 0;
