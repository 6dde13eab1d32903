-- The digest lists who wrote what is unread, the last active first.
DROP INDEX members_with_unread;
CREATE INDEX members_with_unread ON members (user_id, last_seq) WHERE unread > 0;
