-- What the schema has on PostgreSQL alone, where many writers, and several nodes, use one database.

-- In place of two counters, whose rows every sender would wait for.
CREATE SEQUENCE message_seq_numbers;
CREATE SEQUENCE room_id_numbers;

-- A node is a row that holds until a time by the server's clock; `boot` is the process behind it, new
-- at each start. `shared` says whether it reaches the others over a bus.
CREATE TABLE nodes (
    id TEXT NOT NULL PRIMARY KEY,
    boot TEXT NOT NULL,
    address TEXT NOT NULL,
    shared BIGINT NOT NULL,
    draining BIGINT NOT NULL DEFAULT 0,
    started_at DOUBLE PRECISION NOT NULL,
    until DOUBLE PRECISION NOT NULL,
    version TEXT NOT NULL,
    settings TEXT NOT NULL
);

-- The process that has a room loaded. What it stores of the room holds only while `owner_epoch` is as
-- it took it. Apart from `rooms`, whose wide row would be written anew with every batch of messages.
CREATE TABLE room_owners (
    room_id BIGINT NOT NULL PRIMARY KEY REFERENCES rooms (id) ON DELETE CASCADE,
    owner TEXT,
    owner_epoch BIGINT NOT NULL,
    last_seq BIGINT NOT NULL
);

-- Who was in a room lately, for the node that takes it next.
CREATE TABLE room_visits (
    room_id BIGINT NOT NULL REFERENCES rooms (id) ON DELETE CASCADE,
    account_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    credential_id TEXT NOT NULL,
    scope TEXT NOT NULL,
    seen_at DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (room_id, account_id)
);

-- Where the sessions are that another process than their own took over, and which process links a
-- server that one process links for all.
CREATE TABLE session_homes (
    id_hash TEXT NOT NULL PRIMARY KEY,
    process TEXT NOT NULL
);

CREATE TABLE backend_homes (
    namespace TEXT NOT NULL PRIMARY KEY,
    process TEXT NOT NULL
);

-- How many sessions each process has of a key. A crash of the server empties what is not logged, and
-- every process says it again within a minute.
CREATE UNLOGGED TABLE session_counts (
    key TEXT NOT NULL,
    process TEXT NOT NULL,
    number BIGINT NOT NULL,
    PRIMARY KEY (key, process)
) WITH (fillfactor = 50);

-- Rate limits: `taken` of `most` since a window was `opened`; `granted` by the last statement that
-- counted.
CREATE UNLOGGED TABLE rate_counts (
    key TEXT NOT NULL PRIMARY KEY,
    taken BIGINT NOT NULL,
    granted BIGINT NOT NULL,
    most BIGINT NOT NULL,
    seconds BIGINT NOT NULL,
    opened DOUBLE PRECISION NOT NULL
) WITH (fillfactor = 50);

-- The log of changes that no node may miss.
CREATE TABLE changes (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tx XID8 NOT NULL DEFAULT pg_current_xact_id(),
    at DOUBLE PRECISION NOT NULL DEFAULT extract(epoch FROM clock_timestamp()),
    subject TEXT NOT NULL,
    event TEXT NOT NULL
);

CREATE INDEX changes_by_tx ON changes (tx);
CREATE INDEX changes_by_age ON changes (at);
