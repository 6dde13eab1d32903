-- A message that its sender has deleted counts no longer for the sender but as kept by its recipient,
-- as far as that account has room for it.
ALTER TABLE messages ADD COLUMN kept BIGINT NOT NULL DEFAULT 0;
ALTER TABLE mail_shares ADD COLUMN kept BIGINT NOT NULL DEFAULT 0;
