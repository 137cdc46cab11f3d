-- The page ledger says why a page was asked for, and where keys were found that a page had skipped. A line of it may be
-- longer than a table WITHOUT ROWID keeps in place, which would cost each page two more of the log.

DROP TABLE sync_pages;

CREATE TABLE sync_pages (
  walk_id INTEGER NOT NULL,
  ordinal INTEGER NOT NULL /* of the answer within its walk */,
  pass INTEGER NOT NULL,
  page INTEGER NOT NULL,
  total INTEGER,
  keys TEXT NOT NULL /* JSON list, in the order of the list */,
  read_at TEXT NOT NULL,
  why TEXT NOT NULL /* forward, back, again, overlap, look, still, front, sample */,
  places TEXT /* JSON list beside keys, for a page that was asked again: [ordinal, position] of each key that was new, null for the others */,
  PRIMARY KEY (walk_id, ordinal)
) STRICT;

-- What their accounts say is not enough to go on.
UPDATE sync_walks SET status = 'abandoned', finished_at = updated_at WHERE status = 'open';
