-- Who has an account. One row in handles for each name that cannot be taken: a redirect points at
-- the user, so that a chain of changes leads to the present handle by itself.
CREATE TABLE counters (
    name TEXT NOT NULL PRIMARY KEY,
    value BIGINT NOT NULL
);

CREATE TABLE users (
    id TEXT NOT NULL PRIMARY KEY,
    handle TEXT NOT NULL UNIQUE,
    display_name TEXT NOT NULL,
    bio TEXT NOT NULL,
    privacy TEXT NOT NULL,
    status TEXT NOT NULL,
    account_type TEXT NOT NULL,
    public_key TEXT NOT NULL,
    private_key TEXT NOT NULL,
    client_public_key TEXT,
    token_hash TEXT NOT NULL UNIQUE,
    recovery_hash TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);

CREATE TABLE handles (
    handle TEXT NOT NULL PRIMARY KEY,
    user_id TEXT,
    kind TEXT NOT NULL,
    until BIGINT
);

CREATE INDEX handles_of_user ON handles (user_id);

CREATE TABLE user_grams (
    gram TEXT NOT NULL,
    user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    PRIMARY KEY (gram, user_id)
);

CREATE INDEX grams_of_user ON user_grams (user_id);

CREATE TABLE contacts (
    user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    contact_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    nickname TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (user_id, contact_id)
);

CREATE INDEX contacts_by_age ON contacts (user_id, created_at, contact_id);
CREATE INDEX contacts_of_contact ON contacts (contact_id);

CREATE TABLE blocks (
    user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    blocked_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    PRIMARY KEY (user_id, blocked_id)
);

CREATE INDEX blocks_of_blocked ON blocks (blocked_id);

CREATE TABLE invites (
    code_hash TEXT NOT NULL PRIMARY KEY,
    created_by TEXT REFERENCES users (id) ON DELETE CASCADE,
    pending TEXT,
    created_at BIGINT NOT NULL,
    claimed_by TEXT,
    claimed_at BIGINT
);

CREATE INDEX invites_of_user ON invites (created_by);
