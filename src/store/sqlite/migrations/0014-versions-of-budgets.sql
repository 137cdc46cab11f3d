-- A version of each budget, as on a server: a decision is written only if nobody else has written since it was made.

ALTER TABLE sync_gates ADD COLUMN version INTEGER NOT NULL DEFAULT 1;
