-- Refreshes: what a job keeps between them, and what they saw while a full walk was open.

ALTER TABLE sync_jobs ADD COLUMN rows_added INTEGER NOT NULL DEFAULT 0 /* rows ever added: two of these numbers tell how many are new */;
ALTER TABLE sync_jobs ADD COLUMN refresh TEXT /* JSON: what the next refresh starts from; null before the first complete full walk */;
ALTER TABLE sync_jobs ADD COLUMN fresh_as_of TEXT /* what was added at the newest end before then is in the mirror */;
ALTER TABLE sync_jobs ADD COLUMN newest TEXT /* first, last: the end where new items appear; null while neither is known */;

ALTER TABLE sync_walks ADD COLUMN rows_added_before INTEGER NOT NULL DEFAULT 0 /* rows_added of the job when the walk began */;

-- Of refreshes, and of walks in their place, there are hundreds a day.
ALTER TABLE sync_walks ADD COLUMN brief INTEGER NOT NULL DEFAULT 0 /* 1: of a short list, in place of a refresh, and it found nothing: it goes after a day */;
ALTER TABLE sync_runs ADD COLUMN brief INTEGER NOT NULL DEFAULT 0 /* 1: a refresh, or a walk in place of one, that found nothing: it goes after a day */;

CREATE INDEX sync_walks_brief ON sync_walks (organization_id, collection, updated_at) WHERE brief = 1;
CREATE INDEX sync_runs_brief ON sync_runs (organization_id, collection, started_at) WHERE brief = 1;

ALTER TABLE sync_rejects ADD COLUMN only_refreshed INTEGER NOT NULL DEFAULT 0 /* 1: no walk has met it yet, so it is new to the next full walk */;

CREATE TABLE sync_refreshed (
  walk_id INTEGER NOT NULL /* a full walk that was open */,
  keys TEXT NOT NULL /* JSON list: the ids on a page that a refresh read meanwhile, so the walk does not miss them */
) STRICT;

CREATE INDEX sync_refreshed_by_walk ON sync_refreshed (walk_id);

-- A job's last walk is found without going through its refreshes, of which each day has hundreds.
CREATE INDEX sync_runs_of_walks ON sync_runs (organization_id, collection, id) WHERE trigger <> 'refresh';

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
  max(walk.started_at, coalesce(job.fresh_as_of, '')) AS fresh_as_of,
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
