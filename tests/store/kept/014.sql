BEGIN TRANSACTION;
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
INSERT INTO "audit" VALUES(1,1.79480923073309826852e+09,'hub.grant','operator','56a383cf-816d-4587-a5b4-f7601f76f284','bob',NULL,NULL,'{"detail":"!mcp.request.tools/call:msg/archive"}');
INSERT INTO "audit" VALUES(2,1.79480923063706493381e+09,'room.invite','ann','70850e1c-26e8-4156-870e-f0fcd6c58a37','kim',NULL,'square','{}');
INSERT INTO "audit" VALUES(3,1.79480923066820406914e+09,'room.invite','ann','70850e1c-26e8-4156-870e-f0fcd6c58a37','lou',NULL,'square','{}');
CREATE TABLE blocks (
    user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    blocked_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    PRIMARY KEY (user_id, blocked_id)
);
CREATE TABLE clock_steps (
    seq BIGINT NOT NULL PRIMARY KEY
);
CREATE TABLE contacts (
    user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    contact_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    nickname TEXT NOT NULL,
    created_at BIGINT NOT NULL, sealed_nickname TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (user_id, contact_id)
);
INSERT INTO "contacts" VALUES('70850e1c-26e8-4156-870e-f0fcd6c58a37','56a383cf-816d-4587-a5b4-f7601f76f284','',1794809230,'');
CREATE TABLE copies (
    user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    seq BIGINT NOT NULL REFERENCES messages (seq) ON DELETE CASCADE,
    thread_id TEXT NOT NULL,
    incoming BIGINT NOT NULL,
    unread BIGINT NOT NULL,
    urgent BIGINT NOT NULL,
    PRIMARY KEY (user_id, seq)
);
INSERT INTO "copies" VALUES('70850e1c-26e8-4156-870e-f0fcd6c58a37',1,'c4c21a65-8186-48da-851c-645432c3eb40',0,0,0);
INSERT INTO "copies" VALUES('56a383cf-816d-4587-a5b4-f7601f76f284',1,'c4c21a65-8186-48da-851c-645432c3eb40',1,1,0);
CREATE TABLE counters (
    name TEXT NOT NULL PRIMARY KEY,
    value BIGINT NOT NULL
);
INSERT INTO "counters" VALUES('message_seq',1);
INSERT INTO "counters" VALUES('room_id',1);
INSERT INTO "counters" VALUES('audit_id',3);
INSERT INTO "counters" VALUES('users',3);
CREATE TABLE handles (
    handle TEXT NOT NULL PRIMARY KEY,
    user_id TEXT,
    kind TEXT NOT NULL,
    until BIGINT
);
INSERT INTO "handles" VALUES('ann','70850e1c-26e8-4156-870e-f0fcd6c58a37','live',NULL);
INSERT INTO "handles" VALUES('bob','56a383cf-816d-4587-a5b4-f7601f76f284','live',NULL);
INSERT INTO "handles" VALUES('cleo','16abf553-7bc5-465e-b2c7-22e64970cfd9','live',NULL);
CREATE TABLE health (
    id BIGINT NOT NULL PRIMARY KEY,
    probe TEXT NOT NULL
);
INSERT INTO "health" VALUES(1,'');
CREATE TABLE hub_grants (
    account_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    pattern TEXT NOT NULL,
    granted_at BIGINT NOT NULL,
    PRIMARY KEY (account_id, pattern)
);
INSERT INTO "hub_grants" VALUES('56a383cf-816d-4587-a5b4-f7601f76f284','!mcp.request.tools/call:msg/archive',1794809230);
CREATE TABLE invites (
    code_hash TEXT NOT NULL PRIMARY KEY,
    created_by TEXT REFERENCES users (id) ON DELETE CASCADE,
    pending TEXT,
    created_at BIGINT NOT NULL,
    claimed_by TEXT,
    claimed_at BIGINT
, handle TEXT, until BIGINT);
CREATE TABLE mail_shares (
    account TEXT NOT NULL PRIMARY KEY REFERENCES users (id) ON DELETE CASCADE,
    messages BIGINT NOT NULL,
    bytes BIGINT NOT NULL
);
INSERT INTO "mail_shares" VALUES('70850e1c-26e8-4156-870e-f0fcd6c58a37',1,552);
CREATE TABLE mcp_sessions (
    id_hash TEXT NOT NULL PRIMARY KEY,
    user_id TEXT REFERENCES users (id) ON DELETE CASCADE,
    state TEXT NOT NULL,
    until BIGINT NOT NULL
);
INSERT INTO "mcp_sessions" VALUES('9b07d679c83ff2dc9d4e1763b2850474455d60e5d944a65ff0d22124cb3566db','16abf553-7bc5-465e-b2c7-22e64970cfd9','hecmb9DyFzhJ4yDMoaroHnhzlK941zFIxXfF+r/xIv0SzsKwo8BR2587cy9na1JsVknw8EI3s5CoH4NgttXn+KXT/bN55B7ZoPzWlx5KmJ2HR1dL7v5YGei5QZrTNxKqTubRXm9Q6pYA3bbHWJwAnHeTmM2oCEHGLtvlfDvwjOHvg/ZsZiwDR+gzLR15YhUBw7Y1gNAeGBVkEDi4NA==',1797401230);
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
INSERT INTO "members" VALUES('c4c21a65-8186-48da-851c-645432c3eb40','70850e1c-26e8-4156-870e-f0fcd6c58a37','56a383cf-816d-4587-a5b4-f7601f76f284','active',0,0,1,1794809230,0);
INSERT INTO "members" VALUES('c4c21a65-8186-48da-851c-645432c3eb40','56a383cf-816d-4587-a5b4-f7601f76f284','70850e1c-26e8-4156-870e-f0fcd6c58a37','active',0,1,1,1794809230,0);
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
INSERT INTO "messages" VALUES(1,'1f9bfcd0-b69d-41b2-aa13-9d95a08fb88a','c4c21a65-8186-48da-851c-645432c3eb40','70850e1c-26e8-4156-870e-f0fcd6c58a37','56a383cf-816d-4587-a5b4-f7601f76f284',NULL,'normal','server_assisted','wic44bxOdt0U2OgtkcvJJUxtOCoNy5JTjg/7jw==','WnwH2BDN4r7OHgBxdizMu7BxZfgmL+ZW','sv+Jxbfa+C0PuI7CZoapuJjhUDUP1kcF9qJJvIdeom4=','haJS8lVLtO+MLGepQEzdxYMOB3IkH0MDJad55us2lgQ=',1794809230);
CREATE TABLE meta (
    key TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
);
INSERT INTO "meta" VALUES('database_id','d2960b37b15a7eceb18fcd0629fdefb3');
INSERT INTO "meta" VALUES('epoch','d59e9294c0b5a20c');
INSERT INTO "meta" VALUES('created_at','1794809228');
INSERT INTO "meta" VALUES('data_key.a9a86cb187da67a8','k5B1+sNPQLVt5JTizTCzb5MLrvJPSEqLKIIF4lSHVoRfXCw9aJyrsH0AY1lw8xFLuqvhROvlk3QGCdcSmJBq1TLBwj47KhNM');
INSERT INTO "meta" VALUES('master_key_id','a9a86cb187da67a8');
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
CREATE TABLE room_backends (
    room_id BIGINT NOT NULL REFERENCES rooms (id) ON DELETE CASCADE,
    namespace TEXT NOT NULL,
    added_by TEXT,
    added_at BIGINT NOT NULL,
    PRIMARY KEY (room_id, namespace)
);
CREATE TABLE room_guests (
    id TEXT NOT NULL PRIMARY KEY,
    room_id BIGINT NOT NULL REFERENCES rooms (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    likeness TEXT NOT NULL,
    invited_by TEXT NOT NULL,
    invitation_hash TEXT UNIQUE,
    credential_hash TEXT UNIQUE,
    created_at BIGINT NOT NULL,
    expires_at BIGINT, capabilities TEXT NOT NULL DEFAULT '[]', invite_id TEXT NOT NULL DEFAULT '',
    UNIQUE (room_id, likeness)
);
INSERT INTO "room_guests" VALUES('guest:e89fee2c-52d8-464a-a594-a3e74dea8fac',1,'kim','klm','70850e1c-26e8-4156-870e-f0fcd6c58a37',NULL,'a0062f55bb57b18fa7ec075dfa1074f79005b49dec4072bb67b7d8dbc543eca8',1794809230,NULL,'[]','01a1e2f7-752a-7000-8e17-bd5fffcbceff');
INSERT INTO "room_guests" VALUES('guest:c6f3a050-cbc3-49c8-aa6b-2232aaa9f8d0',1,'lou','lou','70850e1c-26e8-4156-870e-f0fcd6c58a37','4b4f733c4492905cdf36f962ba61ba2aea30704080524c28f5e5def6a170a7a5',NULL,1794809230,1795414030,'[]','01a1e2f7-7547-7000-862d-f2980c905cfe');
CREATE TABLE room_members (
    room_id BIGINT NOT NULL REFERENCES rooms (id) ON DELETE CASCADE,
    account_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    role TEXT NOT NULL,
    state TEXT NOT NULL,
    PRIMARY KEY (room_id, account_id)
);
INSERT INTO "room_members" VALUES(1,'70850e1c-26e8-4156-870e-f0fcd6c58a37','owner','member');
INSERT INTO "room_members" VALUES(1,'56a383cf-816d-4587-a5b4-f7601f76f284','member','member');
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
INSERT INTO "room_messages" VALUES(1,1,'01a1e2f7-752a-7000-8e17-bd5fffcbceff',1.79480923063380956648e+09,'room.invite','70850e1c-26e8-4156-870e-f0fcd6c58a37',NULL,X'7B22736571223A312C227473223A22323032362D31312D31365430363A30373A31302E3633335A222C2266726F6D223A22616E6E222C226964223A2230316131653266372D373532612D373030302D386531372D626435666666636263656666222C2270726F746F636F6C223A226D6370782F7631222C226B696E64223A22726F6F6D2E696E76697465222C227061796C6F6164223A7B226775657374223A226B696D227D7D');
INSERT INTO "room_messages" VALUES(1,2,'01a1e2f7-7547-7000-862d-f2980c905cfe',1.79480923066323733335e+09,'room.invite','70850e1c-26e8-4156-870e-f0fcd6c58a37',NULL,X'7B22736571223A322C227473223A22323032362D31312D31365430363A30373A31302E3636335A222C2266726F6D223A22616E6E222C226964223A2230316131653266372D373534372D373030302D383632642D663239383063393035636665222C2270726F746F636F6C223A226D6370782F7631222C226B696E64223A22726F6F6D2E696E76697465222C227061796C6F6164223A7B226775657374223A226C6F75227D7D');
INSERT INTO "room_messages" VALUES(1,3,'01a1e2f7-7563-7000-8943-e99fcdebf91a',1.79480923069085741049e+09,'chat.message','56a383cf-816d-4587-a5b4-f7601f76f284',NULL,X'7B22736571223A332C227473223A22323032362D31312D31365430363A30373A31302E3639305A222C2266726F6D223A22626F62222C226964223A2230316131653266372D373536332D373030302D383934332D653939666364656266393161222C2270726F746F636F6C223A226D6370782F7631222C226B696E64223A22636861742E6D657373616765222C227061796C6F6164223A7B2274657874223A2268656C6C6F227D7D');
CREATE TABLE room_shares (
    room_id BIGINT NOT NULL REFERENCES rooms (id) ON DELETE CASCADE,
    author TEXT NOT NULL,
    messages BIGINT NOT NULL,
    bytes BIGINT NOT NULL,
    PRIMARY KEY (room_id, author)
);
INSERT INTO "room_shares" VALUES(1,'70850e1c-26e8-4156-870e-f0fcd6c58a37',2,844);
INSERT INTO "room_shares" VALUES(1,'56a383cf-816d-4587-a5b4-f7601f76f284',1,424);
CREATE TABLE room_snapshots (
    room_id BIGINT NOT NULL PRIMARY KEY REFERENCES rooms (id) ON DELETE CASCADE,
    seq BIGINT NOT NULL,
    data BLOB NOT NULL
);
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
    created_by TEXT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
, oldest_seq BIGINT);
INSERT INTO "rooms" VALUES(1,'square','7ef51ca1','open',1,NULL,'{}','{"quorum":1,"proposal_seconds":0.0,"request_seconds":0.0,"keep_messages":0,"keep_days":0,"progress_seconds":0.0,"loop_guard":30}',1,'70850e1c-26e8-4156-870e-f0fcd6c58a37',1794809230,1794809230,NULL);
CREATE TABLE schema_migrations (
    version BIGINT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL,
    sha256 TEXT NOT NULL,
    applied_at BIGINT NOT NULL
);
INSERT INTO "schema_migrations" VALUES(1,'foundation','170b5cfe15f50c3f69023337e83668d5678b9e2916f0e76387caa3cb53bd8110',1794809228);
INSERT INTO "schema_migrations" VALUES(2,'accounts','9c6332a23196d0415a32095a74c07a25ac2ffa6bcb100f25199bde2fb3b48ae5',1794809228);
INSERT INTO "schema_migrations" VALUES(3,'mail','ec94379f2a7150735bb0f993e0e56bf3cd9e3e42412f41988d75bc47a108a3d6',1794809228);
INSERT INTO "schema_migrations" VALUES(4,'rooms','2a66c481ada4c535da0260e8b9f1f4f89ca327390cfda9ab1ab7825183fa9c2e',1794809228);
INSERT INTO "schema_migrations" VALUES(5,'gateway','36a3b8d1049d66ab302a7c28e855fa27bafcbd65d518eb30632d6def8ed08714',1794809228);
INSERT INTO "schema_migrations" VALUES(6,'erasure','0c28dff0415f62302c5ed8afa90c2cdd7bf787d6675469042fe0a87adac5ed7d',1794809228);
INSERT INTO "schema_migrations" VALUES(7,'quotas','7fa2c5112cf7a67bbf34edce5f8ea56b0ce872f951a63edb9a8b61c60164b2a5',1794809228);
INSERT INTO "schema_migrations" VALUES(8,'nicknames','76d7b2ea84ed299879dbe1b24620f631add27341c039402b62eb8f81ca744a7c',1794809228);
INSERT INTO "schema_migrations" VALUES(9,'sent_keys_and_clock_steps','e27228b5e3a681b5a242c8294608487a0d9f62311e5aea276e5a5453d51e2795',1794809228);
INSERT INTO "schema_migrations" VALUES(10,'payload_formats','cc01585c449f773d4222e49ed18f13d2ffe1eca50b5efc38d56c91dd3422e533',1794809228);
INSERT INTO "schema_migrations" VALUES(11,'audit','0cd14ddb36b73165c8d84409f8b66dcff7b7b5fa8276b3e75dc465766f2e46c7',1794809228);
INSERT INTO "schema_migrations" VALUES(12,'guest_rights','35900b4d75a418e8b18218bc36635c19f0b17067643dd0a567179172d52d649e',1794809228);
INSERT INTO "schema_migrations" VALUES(13,'contacts_by_age','d0bd2dcf4da777a7a943465f6e9361b85efb33ac299ac0ad78a05532ebee8a85',1794809228);
INSERT INTO "schema_migrations" VALUES(14,'mcp_sessions','342eab3acea2f5201e6e9d674c1afab0015b112af30045c3e42a579b8172ed8c',1794809228);
CREATE TABLE sent_keys (
    user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    key_hash TEXT NOT NULL,
    answer TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (user_id, key_hash)
);
CREATE TABLE threads (
    id TEXT NOT NULL PRIMARY KEY,
    pair TEXT NOT NULL UNIQUE,
    subject TEXT NOT NULL,
    created_by TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);
INSERT INTO "threads" VALUES('c4c21a65-8186-48da-851c-645432c3eb40','56a383cf-816d-4587-a5b4-f7601f76f284:70850e1c-26e8-4156-870e-f0fcd6c58a37','Pgz9BeHTPaFBSXn8bb+ULfH3lC5vmw4BdEFza0ymYyahwJnyu8mEUd3M/IN5W7p+maGAGBTAfVVJgQ==','70850e1c-26e8-4156-870e-f0fcd6c58a37',1794809230,1794809230);
CREATE TABLE user_grams (
    gram TEXT NOT NULL,
    user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    PRIMARY KEY (gram, user_id)
);
INSERT INTO "user_grams" VALUES('a','70850e1c-26e8-4156-870e-f0fcd6c58a37');
INSERT INTO "user_grams" VALUES('nn','70850e1c-26e8-4156-870e-f0fcd6c58a37');
INSERT INTO "user_grams" VALUES('ann','70850e1c-26e8-4156-870e-f0fcd6c58a37');
INSERT INTO "user_grams" VALUES('an','70850e1c-26e8-4156-870e-f0fcd6c58a37');
INSERT INTO "user_grams" VALUES('n','70850e1c-26e8-4156-870e-f0fcd6c58a37');
INSERT INTO "user_grams" VALUES('b','56a383cf-816d-4587-a5b4-f7601f76f284');
INSERT INTO "user_grams" VALUES('ob','56a383cf-816d-4587-a5b4-f7601f76f284');
INSERT INTO "user_grams" VALUES('bob','56a383cf-816d-4587-a5b4-f7601f76f284');
INSERT INTO "user_grams" VALUES('bo','56a383cf-816d-4587-a5b4-f7601f76f284');
INSERT INTO "user_grams" VALUES('o','56a383cf-816d-4587-a5b4-f7601f76f284');
INSERT INTO "user_grams" VALUES('cle','16abf553-7bc5-465e-b2c7-22e64970cfd9');
INSERT INTO "user_grams" VALUES('c','16abf553-7bc5-465e-b2c7-22e64970cfd9');
INSERT INTO "user_grams" VALUES('l','16abf553-7bc5-465e-b2c7-22e64970cfd9');
INSERT INTO "user_grams" VALUES('leo','16abf553-7bc5-465e-b2c7-22e64970cfd9');
INSERT INTO "user_grams" VALUES('eo','16abf553-7bc5-465e-b2c7-22e64970cfd9');
INSERT INTO "user_grams" VALUES('le','16abf553-7bc5-465e-b2c7-22e64970cfd9');
INSERT INTO "user_grams" VALUES('e','16abf553-7bc5-465e-b2c7-22e64970cfd9');
INSERT INTO "user_grams" VALUES('o','16abf553-7bc5-465e-b2c7-22e64970cfd9');
INSERT INTO "user_grams" VALUES('cl','16abf553-7bc5-465e-b2c7-22e64970cfd9');
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
    token_hash TEXT NOT NULL UNIQUE,
    recovery_hash TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
, payload_formats TEXT NOT NULL DEFAULT '', suspended_at BIGINT);
INSERT INTO "users" VALUES('70850e1c-26e8-4156-870e-f0fcd6c58a37','ann','ann','','public','','person','sv+Jxbfa+C0PuI7CZoapuJjhUDUP1kcF9qJJvIdeom4=','BmOqkLFjhZU/6opK3+S8Cp/HITgUO64c4nNcacN+4vOPl3C+PF8OgycwSYiPlvma8pnDfhTisOELAy5E6Xq6aBRIAwPCvE4i',NULL,'8209c63fe26f916cb26a17d7cc5587ed3b2905a8a88f093d261bf54d34fc1861','3562261e7e809f6dd9f5417e90a4eb13e1d43b39b5e3de6c74e3a130ccaf23db',1794809228,1794809228,'',NULL);
INSERT INTO "users" VALUES('56a383cf-816d-4587-a5b4-f7601f76f284','bob','bob','','public','','person','haJS8lVLtO+MLGepQEzdxYMOB3IkH0MDJad55us2lgQ=','QcxMt2J3q8Tw/CK6BSlivAHqH4+jpvBfODVQ01XnaL/y/eqP9ZkEysOezLchkqz2lQSGKQ3zvFGnPZ5RkaVTuqeKbWBzvDSt',NULL,'a5bfe921bcfb53233623ca8ccec376413f00bd1401ed036ba8e5b12545772fb4','2261b441d428d1dedfedf2a9d4e2f592283233194274df738563c20745c5a5ec',1794809228,1794809228,'',NULL);
INSERT INTO "users" VALUES('16abf553-7bc5-465e-b2c7-22e64970cfd9','cleo','cleo','','public','','person','TzDCZ4N7lQYEbR6Sk44mltAd4u/2wiGm980eCeD2eis=','cdOMpCA84fHwZcqEiz/bPHiSwSU7EMeDofZXN6oCobti6ARbAvkrs6rNyDgxS7kLG4ng6wJIG3WzrQ8+P1RoCP1EnjQSFP1+',NULL,'5cf2ab20a87ffa6c8de1f69f227b7b5349f453a4b3b7614a9d40b97b7be124f7','cc1951ad65ff6847221f227384c409d5b699efd26aa54eb9b269987d368bbc27',1794809230,1794809230,'',NULL);
CREATE INDEX handles_of_user ON handles (user_id);
CREATE INDEX grams_of_user ON user_grams (user_id);
CREATE INDEX contacts_of_contact ON contacts (contact_id);
CREATE INDEX blocks_of_blocked ON blocks (blocked_id);
CREATE INDEX invites_of_user ON invites (created_by);
CREATE INDEX members_by_activity ON members (user_id, last_seq);
CREATE INDEX members_by_state ON members (user_id, state, last_seq);
CREATE INDEX members_with_unread ON members (user_id) WHERE unread > 0;
CREATE INDEX messages_of_thread ON messages (thread_id, seq);
CREATE INDEX copies_incoming ON copies (user_id, incoming, seq);
CREATE INDEX copies_of_thread ON copies (user_id, thread_id, seq);
CREATE INDEX copies_of_message ON copies (seq);
CREATE INDEX copies_unread ON copies (user_id, seq) WHERE unread = 1;
CREATE INDEX copies_unread_of_thread ON copies (user_id, thread_id, seq) WHERE unread = 1;
CREATE INDEX copies_urgent ON copies (user_id) WHERE unread = 1 AND urgent = 1;
CREATE INDEX rooms_listed ON rooms (name) WHERE access <> 'private';
CREATE INDEX rooms_of_member ON room_members (account_id, room_id);
CREATE INDEX owners_of_room ON room_members (room_id) WHERE role = 'owner';
CREATE INDEX room_messages_by_id ON room_messages (room_id, id);
CREATE INDEX guests_of_inviter ON room_guests (invited_by);
CREATE INDEX guests_who_wait ON room_guests (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX invites_for_handle ON invites (handle) WHERE handle IS NOT NULL;
CREATE INDEX shares_of_author ON room_shares (author);
CREATE INDEX contacts_unsealed ON contacts (user_id, contact_id) WHERE nickname <> '';
CREATE INDEX sent_keys_by_age ON sent_keys (created_at);
CREATE INDEX audit_by_time ON audit (at);
CREATE INDEX mcp_sessions_of_user ON mcp_sessions (user_id, until);
CREATE INDEX mcp_sessions_by_age ON mcp_sessions (until);
COMMIT;