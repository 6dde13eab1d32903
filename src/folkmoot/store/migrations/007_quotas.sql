-- How much is stored and who pays for it, kept with every message, so that nobody has to count it.
-- A message of mail counts for its sender until neither side has a copy.
CREATE TABLE mail_shares (
    account TEXT NOT NULL PRIMARY KEY REFERENCES users (id) ON DELETE CASCADE,
    messages BIGINT NOT NULL,
    bytes BIGINT NOT NULL
);

INSERT INTO mail_shares (account, messages, bytes)
SELECT m.from_id, COUNT(*), SUM(512 + LENGTH(m.ciphertext)) FROM messages m
WHERE EXISTS (SELECT 1 FROM users u WHERE u.id = m.from_id) GROUP BY m.from_id;

-- An author is whoever sent a message or, for one of the gateway's own, whom it is about; '' is the
-- gateway. What an account has in all rooms is the sum of its shares, and so is what a room has.
CREATE TABLE room_shares (
    room_id BIGINT NOT NULL REFERENCES rooms (id) ON DELETE CASCADE,
    author TEXT NOT NULL,
    messages BIGINT NOT NULL,
    bytes BIGINT NOT NULL,
    PRIMARY KEY (room_id, author)
);

CREATE INDEX shares_of_author ON room_shares (author);

INSERT INTO room_shares (room_id, author, messages, bytes)
SELECT room_id, COALESCE(account, about, ''), COUNT(*), SUM(256 + LENGTH(data)) FROM room_messages
GROUP BY room_id, COALESCE(account, about, '');

-- From first_seq on nothing is missing. Before it, some messages are kept back to this one.
ALTER TABLE rooms ADD COLUMN oldest_seq BIGINT;
