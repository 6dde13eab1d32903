-- Several nodes on one database. A node is a row that holds until a time by the server's clock; `boot`
-- is the process behind it, new at each start. `shared` is 1 where it reaches the others over a bus.
ALTER TABLE nodes ADD COLUMN boot TEXT NOT NULL DEFAULT '';
ALTER TABLE nodes ADD COLUMN address TEXT NOT NULL DEFAULT '';
ALTER TABLE nodes ADD COLUMN shared BIGINT NOT NULL DEFAULT 0;
ALTER TABLE nodes ADD COLUMN draining BIGINT NOT NULL DEFAULT 0;
ALTER TABLE nodes ADD COLUMN started_at DOUBLE PRECISION NOT NULL DEFAULT 0;
ALTER TABLE nodes ADD COLUMN version TEXT NOT NULL DEFAULT '';
ALTER TABLE nodes ADD COLUMN settings TEXT NOT NULL DEFAULT '';

-- The process that has a room loaded. What it stores of the room holds only while `owner_epoch` is as it
-- took it. Apart from `rooms`, whose wide row would be written anew with every batch of messages.
CREATE TABLE room_owners (
    room_id BIGINT NOT NULL PRIMARY KEY REFERENCES rooms (id) ON DELETE CASCADE,
    owner TEXT,
    owner_epoch BIGINT NOT NULL,
    last_seq BIGINT NOT NULL
);
