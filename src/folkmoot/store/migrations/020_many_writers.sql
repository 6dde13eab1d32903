-- What keeps actions of several writers at the same moment from undoing each other.

-- An account has one live handle, and a handle that is kept for someone one open invite.
CREATE UNIQUE INDEX live_handle_of_user ON handles (user_id) WHERE kind = 'live';
CREATE UNIQUE INDEX open_invite_for_handle ON invites (handle)
    WHERE claimed_at IS NULL AND handle IS NOT NULL;

-- How many copies of a message are left: it goes when none is.
ALTER TABLE messages ADD COLUMN copies_left BIGINT NOT NULL DEFAULT 2;
UPDATE messages SET copies_left = (SELECT COUNT(*) FROM copies WHERE copies.seq = messages.seq)
    WHERE (SELECT COUNT(*) FROM copies WHERE copies.seq = messages.seq) <> 2;

-- A change of a room holds for the version it was made of.
ALTER TABLE rooms ADD COLUMN version BIGINT NOT NULL DEFAULT 0;
