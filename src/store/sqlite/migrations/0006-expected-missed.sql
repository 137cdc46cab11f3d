-- A walk says how many items one like it misses on average, and whether its list's total can be counted by.

ALTER TABLE sync_walks ADD COLUMN expected_missed REAL /* by a complete full walk; null: drifted, nothing to count by, or made before this was known */;
ALTER TABLE sync_walks ADD COLUMN total_off TEXT /* of a drifted one: once, the total was not the number of items listed in its last pass; again, in the pass or walk before, too, or it swings */;

-- What an open walk has seen of this is not known.
UPDATE sync_walks
SET account = json_set(
  account,
  '$.account.movement',
  json('null'),
  '$.account.totals',
  json('{"answers":0,"last":null,"change":0,"turns":0,"listed":null,"listedLast":0,"end":null,"isDoubted":false}')
)
WHERE status = 'open';
