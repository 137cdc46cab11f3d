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
