-- Who did what, so that the operator can read it here and not only in the log. `detail` is a JSON
-- object. Lines are removed when they are old or too many.
CREATE TABLE audit (
    id BIGINT NOT NULL PRIMARY KEY,
    at DOUBLE PRECISION NOT NULL,
    action TEXT NOT NULL,
    actor TEXT NOT NULL,
    account TEXT,
    about TEXT NOT NULL,
    outcome TEXT,
    room TEXT,
    detail TEXT NOT NULL
);

CREATE INDEX audit_by_time ON audit (at);

INSERT INTO counters (name, value) VALUES ('audit_id', 0);

-- An account that the operator has suspended cannot be used until it is restored.
ALTER TABLE users ADD COLUMN suspended_at BIGINT;
