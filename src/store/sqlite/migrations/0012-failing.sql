-- Whether a list is failing. The line of a run that began since does not tell, and older ones go.

ALTER TABLE sync_jobs ADD COLUMN failing_since TEXT /* end of the first run that failed, since one succeeded; null: it is well */;
ALTER TABLE sync_jobs ADD COLUMN failing_by TEXT /* walk, refresh: a refresh that succeeds ends what a refresh began */;
ALTER TABLE sync_jobs ADD COLUMN failing_code TEXT /* error_code of the last of these runs */;
ALTER TABLE sync_jobs ADD COLUMN failing_message TEXT /* its error_message */;

UPDATE sync_jobs
SET
  failing_since = run.finished_at,
  failing_by = iif(run.trigger = 'refresh', 'refresh', 'walk'),
  failing_code = run.error_code,
  failing_message = run.error_message
FROM sync_runs AS run
WHERE run.status = 'failed' AND run.id = coalesce(
  -- The last walk that ended, if it failed.
  (
    SELECT CASE walk.status WHEN 'failed' THEN walk.id END
    FROM sync_runs AS walk
    WHERE walk.organization_id = sync_jobs.organization_id AND walk.collection = sync_jobs.collection
      AND walk.trigger <> 'refresh' AND walk.status IN ('succeeded', 'failed')
    ORDER BY walk.finished_at DESC, walk.id DESC
    LIMIT 1
  ),
  -- Else the last run that ended, if that failed.
  (
    SELECT last.id
    FROM sync_runs AS last
    WHERE last.organization_id = sync_jobs.organization_id AND last.collection = sync_jobs.collection
      AND last.status IN ('succeeded', 'failed')
    ORDER BY last.finished_at DESC, last.id DESC
    LIMIT 1
  )
);
