-- Nicknames are sealed like other private words. Those that are not yet stand in `nickname` until
-- the hub, which has the key, has sealed them at its start; the index finds them, and is empty then.
ALTER TABLE contacts ADD COLUMN sealed_nickname TEXT NOT NULL DEFAULT '';

CREATE INDEX contacts_unsealed ON contacts (user_id, contact_id) WHERE nickname <> '';
