-- Mail. A message is stored once and each side has a copy of its own: read state and deletion are
-- per copy, and unread counts are kept, never counted.
INSERT INTO counters (name, value) VALUES ('message_seq', 0);

CREATE TABLE threads (
    id TEXT NOT NULL PRIMARY KEY,
    pair TEXT NOT NULL UNIQUE,
    subject TEXT NOT NULL,
    created_by TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);

CREATE TABLE members (
    thread_id TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    other_id TEXT NOT NULL,
    state TEXT NOT NULL,
    last_read_at BIGINT NOT NULL,
    unread BIGINT NOT NULL,
    last_seq BIGINT NOT NULL,
    last_at BIGINT NOT NULL,
    hidden_seq BIGINT NOT NULL,
    PRIMARY KEY (thread_id, user_id)
);

CREATE INDEX members_by_activity ON members (user_id, last_seq);
CREATE INDEX members_by_state ON members (user_id, state, last_seq);
CREATE INDEX members_with_unread ON members (user_id) WHERE unread > 0;

CREATE TABLE messages (
    seq BIGINT NOT NULL PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    thread_id TEXT NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    from_id TEXT NOT NULL,
    to_id TEXT NOT NULL,
    reply_to TEXT,
    priority TEXT NOT NULL,
    mode TEXT NOT NULL,
    ciphertext TEXT NOT NULL,
    nonce TEXT NOT NULL,
    sender_key TEXT NOT NULL,
    recipient_key TEXT NOT NULL,
    created_at BIGINT NOT NULL
);

CREATE INDEX messages_of_thread ON messages (thread_id, seq);

CREATE TABLE copies (
    user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    seq BIGINT NOT NULL REFERENCES messages (seq) ON DELETE CASCADE,
    thread_id TEXT NOT NULL,
    incoming BIGINT NOT NULL,
    unread BIGINT NOT NULL,
    urgent BIGINT NOT NULL,
    PRIMARY KEY (user_id, seq)
);

CREATE INDEX copies_incoming ON copies (user_id, incoming, seq);
CREATE INDEX copies_of_thread ON copies (user_id, thread_id, seq);
CREATE INDEX copies_of_message ON copies (seq);
CREATE INDEX copies_unread ON copies (user_id, seq) WHERE unread = 1;
CREATE INDEX copies_unread_of_thread ON copies (user_id, thread_id, seq) WHERE unread = 1;
CREATE INDEX copies_urgent ON copies (user_id) WHERE unread = 1 AND urgent = 1;
