-- What waits for people's decisions in rooms, beside the rooms themselves: so what waits for someone
-- in all their rooms is found without loading any. Both tables follow the room, in the transactions
-- that store its messages. Of proposals they have the open ones.
CREATE TABLE room_proposals (
    room_id BIGINT NOT NULL REFERENCES rooms (id) ON DELETE CASCADE,
    id TEXT NOT NULL,
    seq BIGINT NOT NULL,
    kind TEXT NOT NULL,
    proposer TEXT NOT NULL,
    recipients TEXT NOT NULL,
    rejected_by TEXT NOT NULL,
    at DOUBLE PRECISION NOT NULL,
    until DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (room_id, id)
);

-- What an account was granted in a room by others there, as capabilities.
CREATE TABLE room_grants (
    room_id BIGINT NOT NULL REFERENCES rooms (id) ON DELETE CASCADE,
    account_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    capabilities TEXT NOT NULL,
    PRIMARY KEY (room_id, account_id)
);

CREATE INDEX room_grants_of_account ON room_grants (account_id);

-- What each account decided, and what came of it. `asked_by` is an account or a guest.
CREATE TABLE decisions (
    account_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    id TEXT NOT NULL,
    at DOUBLE PRECISION NOT NULL,
    kind TEXT NOT NULL,
    decision TEXT NOT NULL,
    about TEXT NOT NULL,
    what TEXT NOT NULL,
    place TEXT NOT NULL,
    room_id BIGINT REFERENCES rooms (id) ON DELETE CASCADE,
    seq BIGINT,
    asked_by TEXT,
    reason TEXT,
    outcome TEXT NOT NULL,
    ended_at DOUBLE PRECISION,
    PRIMARY KEY (account_id, id)
);

CREATE INDEX decisions_of_account ON decisions (account_id, at, id);
CREATE INDEX decisions_in_room ON decisions (room_id, about) WHERE room_id IS NOT NULL;
CREATE INDEX decisions_by_time ON decisions (at);
