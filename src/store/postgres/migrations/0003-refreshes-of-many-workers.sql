-- Workers keep to one share of a token together, and one of them refreshes a list that is due.
ALTER TABLE sync_gates ADD COLUMN refreshes_at timestamptz, ADD COLUMN refreshes_until timestamptz;
COMMENT ON COLUMN sync_gates.refreshes_at IS 'When a refresh last began.';
COMMENT ON COLUMN sync_gates.refreshes_until IS 'Until when refreshes have used their share.';
ALTER TABLE sync_jobs ADD COLUMN refresh_turn timestamptz;
COMMENT ON COLUMN sync_jobs.refresh_turn IS 'When a worker last took this list to refresh it; for its interval no other one does.';
