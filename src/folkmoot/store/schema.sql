-- The schema of a hub's database, on SQLite and on PostgreSQL. What PostgreSQL alone needs, because
-- several nodes use one database there, is in postgres/schema.sql.

-- Which texts made the schema: this one, and what later releases added.
CREATE TABLE schema_migrations (
    version BIGINT NOT NULL PRIMARY KEY,
    sha256 TEXT NOT NULL
);

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

CREATE TABLE counters (
    name TEXT NOT NULL PRIMARY KEY,
    value BIGINT NOT NULL
);

INSERT INTO counters (name, value) VALUES ('message_seq', 0), ('room_id', 0), ('audit_id', 0);

-- Who has an account. `payload_formats` is what the owner of a client's key reads in a box beside
-- plain text: names, separated by spaces. A suspended account cannot be used until it is restored.
-- The browser sessions of an operator can run the hub.
CREATE TABLE users (
    id TEXT NOT NULL PRIMARY KEY,
    handle TEXT NOT NULL UNIQUE,
    display_name TEXT NOT NULL,
    bio TEXT NOT NULL,
    privacy TEXT NOT NULL,
    status TEXT NOT NULL,
    account_type TEXT NOT NULL,
    public_key TEXT NOT NULL,
    private_key TEXT NOT NULL,
    client_public_key TEXT,
    payload_formats TEXT NOT NULL DEFAULT '',
    recovery_hash TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    suspended_at BIGINT,
    operator_since BIGINT
);

-- One row for each name that cannot be taken: a redirect points at the user, so that a chain of
-- changes leads to the present handle by itself. An account has one live handle.
CREATE TABLE handles (
    handle TEXT NOT NULL PRIMARY KEY,
    user_id TEXT,
    kind TEXT NOT NULL,
    until BIGINT
);

CREATE INDEX handles_of_user ON handles (user_id);
CREATE UNIQUE INDEX live_handle_of_user ON handles (user_id) WHERE kind = 'live';

CREATE TABLE user_grams (
    gram TEXT NOT NULL,
    user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    PRIMARY KEY (gram, user_id)
);

CREATE INDEX grams_of_user ON user_grams (user_id);

-- Nicknames are sealed like other private words.
CREATE TABLE contacts (
    user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    contact_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    nickname TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (user_id, contact_id)
);

CREATE INDEX contacts_of_contact ON contacts (contact_id);

CREATE TABLE blocks (
    user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    blocked_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    PRIMARY KEY (user_id, blocked_id)
);

CREATE INDEX blocks_of_blocked ON blocks (blocked_id);

-- An invite of the operator's may be for one handle alone, and end. A handle that is kept for someone
-- has one open invite.
CREATE TABLE invites (
    code_hash TEXT NOT NULL PRIMARY KEY,
    created_by TEXT REFERENCES users (id) ON DELETE CASCADE,
    pending TEXT,
    created_at BIGINT NOT NULL,
    claimed_by TEXT,
    claimed_at BIGINT,
    handle TEXT,
    until BIGINT
);

CREATE INDEX invites_of_user ON invites (created_by);
CREATE INDEX invites_for_handle ON invites (handle) WHERE handle IS NOT NULL;
CREATE UNIQUE INDEX open_invite_for_handle ON invites (handle)
    WHERE claimed_at IS NULL AND handle IS NOT NULL;

-- What people may do at the hub beyond what everyone may, given while it runs. The settings file
-- has grants of its own, which are not stored.
CREATE TABLE hub_grants (
    account_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    pattern TEXT NOT NULL,
    granted_at BIGINT NOT NULL,
    PRIMARY KEY (account_id, pattern)
);

-- Mail. A message is stored once and each side has a copy of its own: read state and deletion are
-- per copy, and unread counts are kept, never counted.
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
-- The digest lists who wrote what is unread, the last active first.
CREATE INDEX members_with_unread ON members (user_id, last_seq) WHERE unread > 0;

-- A message goes when no copy of it is left. One that its sender has deleted counts no longer for the
-- sender but as kept by its recipient, as far as that account has room for it.
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
    created_at BIGINT NOT NULL,
    copies_left BIGINT NOT NULL DEFAULT 2,
    kept BIGINT NOT NULL DEFAULT 0
);

CREATE INDEX messages_of_thread ON messages (thread_id, seq);
CREATE INDEX messages_by_age ON messages (created_at);

-- The clock can be set back, so the order of messages does not tell their times. A copy has that of
-- its message, and so have the indexes by which pages of what is older than a second are read: they
-- pass over what is younger without reading it.
CREATE TABLE copies (
    user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    seq BIGINT NOT NULL REFERENCES messages (seq) ON DELETE CASCADE,
    created_at BIGINT NOT NULL,
    thread_id TEXT NOT NULL,
    incoming BIGINT NOT NULL,
    unread BIGINT NOT NULL,
    urgent BIGINT NOT NULL,
    PRIMARY KEY (user_id, seq)
);

CREATE INDEX copies_incoming ON copies (user_id, incoming, seq, created_at);
CREATE INDEX copies_of_thread ON copies (user_id, thread_id, seq, created_at);
CREATE INDEX copies_of_message ON copies (seq);
CREATE INDEX copies_unread ON copies (user_id, seq) WHERE unread = 1;
CREATE INDEX copies_unread_of_thread ON copies (user_id, thread_id, seq) WHERE unread = 1;
CREATE INDEX copies_urgent ON copies (user_id) WHERE unread = 1 AND urgent = 1;

-- How much is stored and who pays for it, kept with every message, so that nobody has to count it.
-- A message of mail counts for its sender until neither side has a copy.
CREATE TABLE mail_shares (
    account TEXT NOT NULL PRIMARY KEY REFERENCES users (id) ON DELETE CASCADE,
    messages BIGINT NOT NULL,
    bytes BIGINT NOT NULL,
    kept BIGINT NOT NULL DEFAULT 0
);

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

-- Rooms and what was said in them. A room is known by a number, since it is part of each key of its
-- messages: they take an eighth less space, and come in a quarter faster, than with a text. From
-- `first_seq` on nothing is missing; before it, some messages are kept back to `oldest_seq`. A change
-- of a room holds for the version it was made of.
CREATE TABLE rooms (
    id BIGINT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    epoch TEXT NOT NULL,
    access TEXT NOT NULL,
    durable BIGINT NOT NULL,
    capabilities TEXT,
    grants TEXT NOT NULL,
    policy TEXT NOT NULL,
    first_seq BIGINT NOT NULL,
    oldest_seq BIGINT,
    created_by TEXT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    version BIGINT NOT NULL DEFAULT 0
);

CREATE INDEX rooms_listed ON rooms (name) WHERE access <> 'private';

-- Apart from its room, whose row is read far more often and is small.
CREATE TABLE room_snapshots (
    room_id BIGINT NOT NULL PRIMARY KEY REFERENCES rooms (id) ON DELETE CASCADE,
    seq BIGINT NOT NULL,
    data BLOB NOT NULL
);

-- `read_seq` is the last message that the member has read.
CREATE TABLE room_members (
    room_id BIGINT NOT NULL REFERENCES rooms (id) ON DELETE CASCADE,
    account_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    role TEXT NOT NULL,
    state TEXT NOT NULL,
    read_seq BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (room_id, account_id)
);

CREATE INDEX rooms_of_member ON room_members (account_id, room_id);
CREATE INDEX owners_of_room ON room_members (room_id) WHERE role = 'owner';

-- What was said stays when its sender is gone, so senders are no references.
CREATE TABLE room_messages (
    room_id BIGINT NOT NULL REFERENCES rooms (id) ON DELETE CASCADE,
    seq BIGINT NOT NULL,
    id TEXT NOT NULL,
    at DOUBLE PRECISION NOT NULL,
    kind TEXT NOT NULL,
    account TEXT,
    about TEXT,
    data BLOB NOT NULL,
    PRIMARY KEY (room_id, seq)
);

-- Not unique: an id is free once its message is before the first, and that one may be removed later.
CREATE INDEX room_messages_by_id ON room_messages (room_id, id);

-- An author is whoever sent a message or, for one of the gateway's own, whom it is about; '' is the
-- gateway. What an account has in all rooms is the sum of its shares, and so is what a room has. The
-- last thing that the author said or proposed is `talk_seq`: whether a room has something unread is
-- known without looking for it among its messages.
CREATE TABLE room_shares (
    room_id BIGINT NOT NULL REFERENCES rooms (id) ON DELETE CASCADE,
    author TEXT NOT NULL,
    messages BIGINT NOT NULL,
    bytes BIGINT NOT NULL,
    talk_seq BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (room_id, author)
);

CREATE INDEX shares_of_author ON room_shares (author);

-- A guest has an invitation, of which only a hash is kept, or, once it was exchanged, a credential.
-- `capabilities` is what it shall hold from the start, and `invite_id` the message that invited it:
-- the grant has its name.
CREATE TABLE room_guests (
    id TEXT NOT NULL PRIMARY KEY,
    room_id BIGINT NOT NULL REFERENCES rooms (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    likeness TEXT NOT NULL,
    invited_by TEXT NOT NULL,
    invitation_hash TEXT UNIQUE,
    created_at BIGINT NOT NULL,
    expires_at BIGINT,
    capabilities TEXT NOT NULL,
    invite_id TEXT NOT NULL,
    read_seq BIGINT NOT NULL DEFAULT 0,
    UNIQUE (room_id, likeness)
);

CREATE INDEX guests_of_inviter ON room_guests (invited_by);
CREATE INDEX guests_who_wait ON room_guests (expires_at) WHERE expires_at IS NOT NULL;

-- The messages that mention a member or a guest who has not read them, at most 100 for each.
CREATE TABLE room_mentions (
    room_id BIGINT NOT NULL REFERENCES rooms (id) ON DELETE CASCADE,
    reader TEXT NOT NULL,
    seq BIGINT NOT NULL,
    PRIMARY KEY (room_id, reader, seq)
);

-- The backends that take part in a room.
CREATE TABLE room_backends (
    room_id BIGINT NOT NULL REFERENCES rooms (id) ON DELETE CASCADE,
    namespace TEXT NOT NULL,
    PRIMARY KEY (room_id, namespace)
);

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

-- What programs and rules of the hub asked people, and what those decided. `credential_id` is what a program came with,
-- also when that is gone. An ask whose time is over is open here, and ended for everyone who looks.
CREATE TABLE asks (
    id TEXT NOT NULL PRIMARY KEY,
    asker_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    credential_id TEXT NOT NULL,
    client TEXT NOT NULL,
    decider_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    tool TEXT NOT NULL,
    bound BLOB NOT NULL,
    why TEXT NOT NULL,
    at DOUBLE PRECISION NOT NULL,
    until DOUBLE PRECISION NOT NULL,
    call TEXT NOT NULL,
    rule TEXT NOT NULL,
    person BIGINT NOT NULL,
    state TEXT NOT NULL,
    decided_at DOUBLE PRECISION,
    presence TEXT,
    reason TEXT,
    receipt TEXT,
    run_until DOUBLE PRECISION,
    result BLOB,
    lasts_until DOUBLE PRECISION,
    same TEXT,
    lasting TEXT,
    edited_as TEXT
);

CREATE INDEX asks_open_of_asker ON asks (asker_id, until) WHERE state = 'open';
CREATE INDEX asks_open_of_decider ON asks (decider_id, until) WHERE state = 'open';
CREATE INDEX asks_of_asker ON asks (asker_id, at);
CREATE INDEX asks_of_decider ON asks (decider_id, at);
CREATE INDEX asks_by_call ON asks (call);
CREATE INDEX asks_by_end ON asks (until);
CREATE INDEX asks_lasting ON asks (decider_id, lasts_until) WHERE lasts_until IS NOT NULL;

-- The keys by which decisions about asks are signed; the private half of each is sealed.
CREATE TABLE receipt_keys (
    id TEXT NOT NULL PRIMARY KEY,
    sealed TEXT NOT NULL,
    public_key TEXT NOT NULL,
    made_at DOUBLE PRECISION NOT NULL
);

-- What opens an account, or a guest's room: one has many, each with its own hash, and each is
-- revoked by itself. A session that was signed in by registering or recovering in it is the child of
-- the token that was made there, and ends with it.
CREATE TABLE credentials (
    id TEXT NOT NULL PRIMARY KEY,
    account_id TEXT REFERENCES users (id) ON DELETE CASCADE,
    guest_id TEXT REFERENCES room_guests (id) ON DELETE CASCADE,
    parent_id TEXT REFERENCES credentials (id) ON DELETE CASCADE,
    kind TEXT NOT NULL CHECK (kind IN ('token', 'browser', 'app', 'device', 'guest', 'session')),
    hash TEXT NOT NULL UNIQUE,
    scope TEXT NOT NULL DEFAULT '*',
    label TEXT NOT NULL DEFAULT '',
    created_at BIGINT NOT NULL,
    used_at BIGINT,
    expires_at BIGINT,
    CHECK ((account_id IS NULL) <> (guest_id IS NULL))
);

CREATE INDEX credentials_of_account ON credentials (account_id, created_at, id);
CREATE INDEX credentials_of_guest ON credentials (guest_id) WHERE guest_id IS NOT NULL;
CREATE INDEX credentials_of_parent ON credentials (parent_id) WHERE parent_id IS NOT NULL;
CREATE INDEX credentials_ending ON credentials (expires_at) WHERE expires_at IS NOT NULL;

-- Codes that open one browser session each, minutes after they were made at the latest. The session
-- is the child of the credential that the code was made with; an operator's code has none, and can
-- have a scope of its own.
CREATE TABLE browser_codes (
    hash TEXT NOT NULL PRIMARY KEY,
    account_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    parent_id TEXT REFERENCES credentials (id) ON DELETE CASCADE,
    expires_at BIGINT NOT NULL,
    scope TEXT
);

CREATE INDEX browser_codes_of_account ON browser_codes (account_id, expires_at);
CREATE INDEX browser_codes_of_parent ON browser_codes (parent_id) WHERE parent_id IS NOT NULL;

-- What apps ask for and people let them do, each from its code to its end. A code of an app is made
-- when its person has consented. That of a program on a device is there before: its person finds it by
-- a short code, of which `user_hash` is, and decides; the scope of one that was refused is empty. An
-- unspent code ends with the browser session it was allowed in. A spent one belongs to the grant, a
-- credential of kind `app` or `device` whose hash no text has, and whose children of kind `app` are the
-- access tokens that come and go; it is kept to be recognized.
CREATE TABLE app_grants (
    hash TEXT NOT NULL PRIMARY KEY,
    client_id TEXT NOT NULL,
    client_name TEXT NOT NULL,
    redirect_host TEXT NOT NULL,
    resource TEXT NOT NULL,
    scope TEXT NOT NULL,
    expires_at BIGINT NOT NULL,
    redirect_uri TEXT NOT NULL,
    code_challenge TEXT NOT NULL,
    user_hash TEXT UNIQUE,
    polled_at BIGINT NOT NULL,
    pause BIGINT NOT NULL,
    account_id TEXT REFERENCES users (id) ON DELETE CASCADE,
    parent_id TEXT REFERENCES credentials (id) ON DELETE CASCADE,
    credential_id TEXT UNIQUE REFERENCES credentials (id) ON DELETE CASCADE
);

CREATE INDEX app_grants_of_account ON app_grants (account_id, expires_at) WHERE account_id IS NOT NULL;
CREATE INDEX app_grants_of_parent ON app_grants (parent_id) WHERE parent_id IS NOT NULL;
CREATE INDEX app_grants_unspent ON app_grants (expires_at) WHERE credential_id IS NULL;

-- Refresh tokens are no credentials: they open nothing. A spent one is kept to be recognized.
CREATE TABLE app_refresh (
    hash TEXT NOT NULL PRIMARY KEY,
    grant_id TEXT NOT NULL REFERENCES credentials (id) ON DELETE CASCADE,
    expires_at BIGINT NOT NULL,
    spent_at BIGINT
);

CREATE INDEX app_refresh_of_grant ON app_refresh (grant_id, expires_at);
CREATE INDEX app_refresh_ending ON app_refresh (expires_at);

-- What people let the hub do for them at servers behind it, which are known by their namespaces. The
-- holder is the account, or empty where all share one consent. The tokens are sealed; they are empty
-- before the first consent, and once it has lapsed. `pending` is a sign-in that was begun, sealed too.
-- Who renews the tokens holds the lease meanwhile.
CREATE TABLE consents (
    namespace TEXT NOT NULL,
    holder TEXT NOT NULL,
    account_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    issuer TEXT NOT NULL,
    scope TEXT NOT NULL,
    tokens TEXT NOT NULL,
    pending TEXT NOT NULL,
    version BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT,
    leased_until BIGINT NOT NULL,
    PRIMARY KEY (namespace, holder)
);

CREATE INDEX consents_of_account ON consents (account_id);

-- What the hub is to authorization servers that it registered at, sealed.
CREATE TABLE registrations (
    issuer TEXT NOT NULL PRIMARY KEY,
    client TEXT NOT NULL
);

-- What people sign in with: the public key of a passkey, which works at one name of the hub. Its
-- `credential_id` is the authenticator's; one that counts its signatures never counts back.
CREATE TABLE passkeys (
    id TEXT NOT NULL PRIMARY KEY,
    account_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    credential_id TEXT NOT NULL UNIQUE,
    rp_id TEXT NOT NULL,
    name TEXT NOT NULL,
    public_key TEXT NOT NULL,
    sign_count BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    used_at BIGINT
);

CREATE INDEX passkeys_of_account ON passkeys (account_id, created_at, id);

-- Who people are at the provider of their company, and the groups it told of them at their last
-- sign-in, as a JSON list.
CREATE TABLE identities (
    issuer TEXT NOT NULL,
    subject TEXT NOT NULL,
    account_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    member_of TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    used_at BIGINT NOT NULL,
    PRIMARY KEY (issuer, subject)
);

CREATE INDEX identities_of_account ON identities (account_id);

-- What can be used once and was, until its time is over.
CREATE TABLE spent (
    hash TEXT NOT NULL PRIMARY KEY,
    until BIGINT NOT NULL
);

CREATE INDEX spent_by_age ON spent (until);

-- What the id of an MCP session does not tell by itself: whose it became, its log level, what it
-- subscribed to; sealed. An empty `state` is the mark of a session that was closed. A row goes when
-- its id is too old to be accepted anyway.
CREATE TABLE mcp_sessions (
    id_hash TEXT NOT NULL PRIMARY KEY,
    user_id TEXT REFERENCES users (id) ON DELETE CASCADE,
    state TEXT NOT NULL,
    until BIGINT NOT NULL
);

CREATE INDEX mcp_sessions_of_user ON mcp_sessions (user_id, until);
CREATE INDEX mcp_sessions_by_age ON mcp_sessions (until);

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

-- Who did what, so that the operator can read it here and not only in the log. `detail` is a JSON
-- object. Lines are kept apart in lanes by how easily they are made: calls, what people do to
-- credentials and rights, and what operators do. Each lane has its own bound, so none pushes the
-- lines of another out.
CREATE TABLE audit (
    id BIGINT NOT NULL PRIMARY KEY,
    at DOUBLE PRECISION NOT NULL,
    action TEXT NOT NULL,
    actor TEXT NOT NULL,
    account TEXT,
    about TEXT NOT NULL,
    outcome TEXT,
    room TEXT,
    detail TEXT NOT NULL,
    credential_id TEXT,
    request TEXT,
    server TEXT,
    seconds DOUBLE PRECISION,
    lane TEXT NOT NULL
);

CREATE INDEX audit_by_time ON audit (at);
CREATE INDEX audit_lanes ON audit (lane, id);
-- To show people their own lines, and to forget the names of those who are gone.
CREATE INDEX audit_of_account ON audit (account, id) WHERE account IS NOT NULL;
-- Lines that may be about a person; most lines are calls, and those are not.
CREATE INDEX audit_about_people ON audit (about)
    WHERE action <> 'backend.call' AND action <> 'hub.call' AND action <> 'policy.refused';
