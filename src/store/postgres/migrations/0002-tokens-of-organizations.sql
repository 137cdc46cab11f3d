-- Each request asks whether its token is held.
CREATE INDEX organizations_by_held_token ON organizations (held_fingerprint) WHERE held_fingerprint IS NOT NULL;
CREATE INDEX organizations_by_token ON organizations (last_fingerprint);
