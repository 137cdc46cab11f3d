-- A rate limit's budget is shared by all processes on the mirror, and outlasts them.

ALTER TABLE sync_gates ADD COLUMN known TEXT /* JSON: what all processes together know of the budget */;
ALTER TABLE sync_gates ADD COLUMN waiting_for TEXT /* what the last one who asked waits for */;
ALTER TABLE sync_gates ADD COLUMN waiting_until TEXT;
