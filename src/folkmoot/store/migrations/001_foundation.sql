-- What the hub knows of its own database, and a row for the readiness check to write.

CREATE TABLE meta (
    key TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
);

CREATE TABLE health (
    id BIGINT NOT NULL PRIMARY KEY,
    probe TEXT NOT NULL
);

INSERT INTO health (id, probe) VALUES (1, '');
