-- In tables WITHOUT ROWID the columns of the key come first: up to 3.40, which Debian 12 has, SQLite's integrity_check looks
-- for the other columns behind them, and takes a mirror with a reject for damaged. Copied twice and not renamed, since a
-- view of a user's that cannot be resolved would keep the new table from getting its name.

CREATE TABLE _rejects_aside AS SELECT * FROM sync_rejects;

DROP TABLE sync_rejects;

CREATE TABLE sync_rejects (
  organization_id TEXT NOT NULL,
  collection TEXT NOT NULL,
  fingerprint TEXT NOT NULL /* of json */,
  page INTEGER NOT NULL,
  reason TEXT NOT NULL,
  json TEXT NOT NULL,
  seen_at TEXT NOT NULL,
  PRIMARY KEY (organization_id, collection, fingerprint)
) STRICT, WITHOUT ROWID;

INSERT INTO sync_rejects (organization_id, collection, fingerprint, page, reason, json, seen_at)
SELECT organization_id, collection, fingerprint, page, reason, json, seen_at FROM _rejects_aside;

DROP TABLE _rejects_aside;
