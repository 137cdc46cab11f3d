-- Whether a list is failing. The line of a run that began since does not tell, and older ones go.
ALTER TABLE sync_jobs
  ADD COLUMN failing_since timestamptz,
  ADD COLUMN failing_by text,
  ADD COLUMN failing_code text,
  ADD COLUMN failing_message text;
COMMENT ON COLUMN sync_jobs.failing_since IS 'End of the first run that failed, since one succeeded; null: it is well.';
COMMENT ON COLUMN sync_jobs.failing_by IS 'walk, refresh: a refresh that succeeds ends what a refresh began.';
COMMENT ON COLUMN sync_jobs.failing_code IS 'error_code of the last of these runs.';
COMMENT ON COLUMN sync_jobs.failing_message IS 'Its error_message.';

UPDATE sync_jobs
SET
  failing_since = run.finished_at,
  failing_by = CASE run.trigger WHEN 'refresh' THEN 'refresh' ELSE 'walk' END,
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
