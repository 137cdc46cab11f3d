-- The page ledger says why a page was asked for, and where keys were found that a page had skipped.

ALTER TABLE sync_pages ADD COLUMN why TEXT NOT NULL DEFAULT 'forward' /* forward, back, again, overlap, look, still, front, sample */;
ALTER TABLE sync_pages ADD COLUMN places TEXT /* JSON list beside keys, for a page that was asked again: [ordinal, position] of each key that was new, null for the others */;

-- What their accounts say is not enough to go on.
UPDATE sync_walks SET status = 'abandoned', finished_at = updated_at WHERE status = 'open';
