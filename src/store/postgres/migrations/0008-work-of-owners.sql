-- What the owner of a job does that no line of sync_runs tells, for others who look.
ALTER TABLE sync_jobs
  ADD COLUMN verifying bigint NOT NULL DEFAULT 0,
  ADD COLUMN retry_since timestamptz,
  ADD COLUMN retry_until timestamptz,
  ADD COLUMN retry_error text;
COMMENT ON COLUMN sync_jobs.verifying IS '1: it compares the list, and writes no run.';
COMMENT ON COLUMN sync_jobs.retry_since IS 'When a page failed first that it asks for again; null: none does.';
COMMENT ON COLUMN sync_jobs.retry_until IS 'When it asks next.';
COMMENT ON COLUMN sync_jobs.retry_error IS 'How the page failed last.';
