-- The hubs that use the database, and until when each is known to: one at a time, for now. A database
-- in a file has a lock in its folder instead.
CREATE TABLE nodes (
    id TEXT NOT NULL PRIMARY KEY,
    until DOUBLE PRECISION NOT NULL
);
