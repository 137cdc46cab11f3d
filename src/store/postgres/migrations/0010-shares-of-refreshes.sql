-- What refreshes pay: one row for all lists of a budget, written by compare-and-set.
COMMENT ON COLUMN sync_jobs.refresh_turn IS 'When a worker last took this list to refresh it. For some seconds no other one does.';
-- To drop them would keep each request of older workers waiting until the end of the migration.
COMMENT ON COLUMN sync_gates.refreshes_at IS 'Not used any more.';
COMMENT ON COLUMN sync_gates.refreshes_until IS 'Not used any more.';
CREATE TABLE sync_shares (
  scope text PRIMARY KEY,
  at timestamptz NOT NULL,
  level double precision NOT NULL,
  log_price double precision NOT NULL,
  version bigint NOT NULL
);
COMMENT ON TABLE sync_shares IS 'What refreshes of all lists with one budget pay.';
COMMENT ON COLUMN sync_shares.scope IS 'As in sync_gates.';
COMMENT ON COLUMN sync_shares.at IS 'The time of the other numbers.';
COMMENT ON COLUMN sync_shares.level IS 'Requests that were charged and that the share has not carried yet.';
COMMENT ON COLUMN sync_shares.log_price IS 'The logarithm of the price of a request, in outdated rows times minutes.';
COMMENT ON COLUMN sync_shares.version IS 'Grows with each change, so that no two workers charge the same.';
