-- A worker holds one lock, of its name, instead of one for each job. An earlier version would take it for dead, so it is kept out.
COMMENT ON COLUMN sync_jobs.owner IS 'The worker that has the job, or had it when it died: whether it lives the lock of its name says.';
