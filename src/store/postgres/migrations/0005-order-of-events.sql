-- `seq` of `orders_changes`. The tables of each collection get their columns and indexes for it with this step, too.
CREATE TABLE sync_seq (
  collection text PRIMARY KEY,
  seq bigint NOT NULL
);
COMMENT ON TABLE sync_seq IS 'The numbers of the events of a collection. Who writes events keeps its row locked until they are visible.';
COMMENT ON COLUMN sync_seq.collection IS 'See sync_collections.';
COMMENT ON COLUMN sync_seq.seq IS 'The greatest one that was given.';
