-- A walk says how many items one like it misses on average, and whether its list's total can be counted by.

ALTER TABLE sync_walks ADD COLUMN expected_missed REAL /* by a complete full walk; null: drifted, nothing to count by, or made before this was known */;
ALTER TABLE sync_walks ADD COLUMN total_off TEXT /* of a drifted one: once, the total was not the number of items listed in its last pass; again, in the pass or walk before, too, or it swings */;

-- What an open walk has seen of this is not known.
UPDATE sync_walks
SET account = json_set(
  account,
  '$.account.movement',
  json('null'),
  '$.account.totals',
  json('{"answers":0,"last":null,"change":0,"turns":0,"listed":null,"listedLast":0,"end":null,"isDoubted":false}')
)
WHERE status = 'open';

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
LEFT JOIN sync_runs AS run ON run.id = (
  SELECT id
  FROM sync_runs
  WHERE organization_id = job.organization_id AND collection = job.collection
  ORDER BY id DESC
  LIMIT 1
)
WHERE job.configured = 1 OR job.rows > 0;
