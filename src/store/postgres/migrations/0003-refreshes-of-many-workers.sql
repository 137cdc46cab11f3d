-- Workers keep to one share of a token together, and one of them refreshes a list that is due.
-- `sync_jobs` first: what waits for a long reading of it must not hold `sync_gates`, which each request needs.
ALTER TABLE sync_jobs ADD COLUMN refresh_turn timestamptz;
COMMENT ON COLUMN sync_jobs.refresh_turn IS 'When a worker last took this list to refresh it. For its interval no other one does, unless no run began within three minutes.';
ALTER TABLE sync_gates ADD COLUMN refreshes_at timestamptz, ADD COLUMN refreshes_until timestamptz;
COMMENT ON COLUMN sync_gates.refreshes_at IS 'When a refresh last began.';
COMMENT ON COLUMN sync_gates.refreshes_until IS 'Until when refreshes have used their share.';
