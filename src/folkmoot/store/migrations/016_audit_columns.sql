-- More of what an audit line says has a column of its own: with which credential and in which request
-- it was done, at which server behind the hub, and how long it took.
ALTER TABLE audit ADD COLUMN credential_id TEXT;
ALTER TABLE audit ADD COLUMN request TEXT;
ALTER TABLE audit ADD COLUMN server TEXT;
ALTER TABLE audit ADD COLUMN seconds DOUBLE PRECISION;

-- By account: to show people their own lines, and to forget the names of those who are gone.
CREATE INDEX audit_of_account ON audit (account, id) WHERE account IS NOT NULL;

-- Lines that may be about a person; most lines are calls, and those are not.
CREATE INDEX audit_about_people ON audit (about)
    WHERE action <> 'backend.call' AND action <> 'hub.call' AND action <> 'policy.refused';
