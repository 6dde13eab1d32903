-- What opens an account, or a guest's room: one has many, each with its own hash, and each is
-- revoked by itself. A session that was signed in by registering or recovering in it is the child of
-- the token that was made there, and ends with it. `scope` is kept for later; all are '*' now.
CREATE TABLE credentials (
    id TEXT NOT NULL PRIMARY KEY,
    account_id TEXT REFERENCES users (id) ON DELETE CASCADE,
    guest_id TEXT REFERENCES room_guests (id) ON DELETE CASCADE,
    parent_id TEXT REFERENCES credentials (id) ON DELETE CASCADE,
    kind TEXT NOT NULL CHECK (kind IN ('token', 'browser', 'app', 'device', 'guest', 'session')),
    hash TEXT NOT NULL UNIQUE,
    scope TEXT NOT NULL DEFAULT '*',
    label TEXT NOT NULL DEFAULT '',
    created_at BIGINT NOT NULL,
    used_at BIGINT,
    expires_at BIGINT,
    CHECK ((account_id IS NULL) <> (guest_id IS NULL))
);

CREATE INDEX credentials_of_account ON credentials (account_id, created_at, id);
CREATE INDEX credentials_of_guest ON credentials (guest_id) WHERE guest_id IS NOT NULL;
CREATE INDEX credentials_of_parent ON credentials (parent_id) WHERE parent_id IS NOT NULL;
CREATE INDEX credentials_ending ON credentials (expires_at) WHERE expires_at IS NOT NULL;

INSERT INTO credentials (id, account_id, kind, hash, label, created_at)
    SELECT 'c_' || lower(hex(randomblob(12))), id, 'token', token_hash, 'first token', created_at
    FROM users;

INSERT INTO credentials (id, guest_id, kind, hash, created_at)
    SELECT 'c_' || lower(hex(randomblob(12))), id, 'guest', credential_hash, created_at
    FROM room_guests WHERE credential_hash IS NOT NULL;

-- To rebuild `users` without the column would delete, by cascade, all that refers to it. So the
-- column stays, with a value that is the hash of nothing.
UPDATE users SET token_hash = 'moved ' || id;
UPDATE room_guests SET credential_hash = NULL;
