-- `seq` of `orders_changes`. The tables of each collection get their columns and indexes for it with this step, too.

CREATE TABLE sync_seq (
  collection TEXT PRIMARY KEY,
  -- The greatest one that was given.
  seq INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
