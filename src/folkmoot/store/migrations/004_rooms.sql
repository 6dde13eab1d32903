-- Rooms and what was said in them. A room is known by a number, since it is part of each key of its
-- messages: they take an eighth less space, and come in a quarter faster, than with a text.
INSERT INTO counters (name, value) VALUES ('room_id', 0);

CREATE TABLE rooms (
    id BIGINT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    epoch TEXT NOT NULL,
    access TEXT NOT NULL,
    durable BIGINT NOT NULL,
    capabilities TEXT,
    grants TEXT NOT NULL,
    policy TEXT NOT NULL,
    first_seq BIGINT NOT NULL,
    created_by TEXT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);

CREATE INDEX rooms_listed ON rooms (name) WHERE access <> 'private';

-- Apart from its room, whose row is read far more often and is small.
CREATE TABLE room_snapshots (
    room_id BIGINT NOT NULL PRIMARY KEY REFERENCES rooms (id) ON DELETE CASCADE,
    seq BIGINT NOT NULL,
    data BLOB NOT NULL
);

CREATE TABLE room_members (
    room_id BIGINT NOT NULL REFERENCES rooms (id) ON DELETE CASCADE,
    account_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    role TEXT NOT NULL,
    state TEXT NOT NULL,
    PRIMARY KEY (room_id, account_id)
);

CREATE INDEX rooms_of_member ON room_members (account_id, room_id);
CREATE INDEX owners_of_room ON room_members (room_id) WHERE role = 'owner';

-- What was said stays when its sender is gone, so senders are no references.
CREATE TABLE room_messages (
    room_id BIGINT NOT NULL REFERENCES rooms (id) ON DELETE CASCADE,
    seq BIGINT NOT NULL,
    id TEXT NOT NULL,
    at DOUBLE PRECISION NOT NULL,
    kind TEXT NOT NULL,
    account TEXT,
    about TEXT,
    data BLOB NOT NULL,
    PRIMARY KEY (room_id, seq)
);

-- Not unique: an id is free once its message is before the first, and that one may be removed later.
CREATE INDEX room_messages_by_id ON room_messages (room_id, id);

-- A guest has an invitation, or, once it was exchanged, a credential; of both only hashes are kept.
CREATE TABLE room_guests (
    id TEXT NOT NULL PRIMARY KEY,
    room_id BIGINT NOT NULL REFERENCES rooms (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    likeness TEXT NOT NULL,
    invited_by TEXT NOT NULL,
    invitation_hash TEXT UNIQUE,
    credential_hash TEXT UNIQUE,
    created_at BIGINT NOT NULL,
    expires_at BIGINT,
    UNIQUE (room_id, likeness)
);

CREATE INDEX guests_of_inviter ON room_guests (invited_by);
CREATE INDEX guests_who_wait ON room_guests (expires_at) WHERE expires_at IS NOT NULL;
