-- What people may do at the hub beyond what everyone may, given while it runs. The settings file
-- has grants of its own, which are not stored.
CREATE TABLE hub_grants (
    account_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    pattern TEXT NOT NULL,
    granted_at BIGINT NOT NULL,
    PRIMARY KEY (account_id, pattern)
);

-- An invite of the operator's may be for one handle alone, and end.
ALTER TABLE invites ADD COLUMN handle TEXT;
ALTER TABLE invites ADD COLUMN until BIGINT;

CREATE INDEX invites_for_handle ON invites (handle) WHERE handle IS NOT NULL;

-- What a backend's definitions were when they were first seen or last accepted, and what they are
-- now where that differs. A backend is known by its namespace.
CREATE TABLE pins (
    namespace TEXT NOT NULL,
    name TEXT NOT NULL,
    hash TEXT NOT NULL,
    definition TEXT NOT NULL,
    pinned_at BIGINT NOT NULL,
    changed_hash TEXT,
    changed_definition TEXT,
    changed_at BIGINT,
    PRIMARY KEY (namespace, name)
);

-- The backends that take part in a room.
CREATE TABLE room_backends (
    room_id BIGINT NOT NULL REFERENCES rooms (id) ON DELETE CASCADE,
    namespace TEXT NOT NULL,
    added_by TEXT,
    added_at BIGINT NOT NULL,
    PRIMARY KEY (room_id, namespace)
);
