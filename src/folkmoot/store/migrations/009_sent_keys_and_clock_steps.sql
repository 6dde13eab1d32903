-- A sender may give a message a key of their own: for a day, the same key is answered with the same
-- message. What was answered is sealed; `key_hash` is a hash of the sender and the key.
CREATE TABLE sent_keys (
    user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    key_hash TEXT NOT NULL,
    answer TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (user_id, key_hash)
);

CREATE INDEX sent_keys_by_age ON sent_keys (created_at);

-- The messages whose time is before that of the message stored before them, because the clock was
-- set back. Between two of them times never decrease.
CREATE TABLE clock_steps (
    seq BIGINT NOT NULL PRIMARY KEY
);

INSERT INTO clock_steps (seq)
SELECT seq FROM (
    SELECT seq, created_at, LAG(created_at) OVER (ORDER BY seq) AS earlier FROM messages
) AS ordered
WHERE created_at < earlier;
