-- What refreshes pay: one row for all lists of a budget, written by compare-and-set.

CREATE TABLE sync_shares (
  scope TEXT PRIMARY KEY NOT NULL /* as in sync_gates */,
  at TEXT NOT NULL /* the time of the other numbers */,
  level REAL NOT NULL /* requests that were charged and that the share has not carried yet */,
  log_price REAL NOT NULL /* the logarithm of the price of a request, in outdated rows times minutes */,
  version INTEGER NOT NULL /* grows with each change, so that no two processes charge the same */
) STRICT;
