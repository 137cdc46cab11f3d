-- What the owner of a job does that no line of sync_runs tells, for others who look.

ALTER TABLE sync_jobs ADD COLUMN verifying INTEGER NOT NULL DEFAULT 0 /* 1: it compares the list, and writes no run */;
ALTER TABLE sync_jobs ADD COLUMN retry_since TEXT /* when a page failed first that it asks for again; null: none does */;
ALTER TABLE sync_jobs ADD COLUMN retry_until TEXT /* when it asks next */;
ALTER TABLE sync_jobs ADD COLUMN retry_error TEXT /* how the page failed last */;
