-- Codes that open one browser session each, minutes after they were made at the latest. The session
-- is the child of the credential that the code was made with; an operator's code has none.
CREATE TABLE browser_codes (
    hash TEXT NOT NULL PRIMARY KEY,
    account_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    parent_id TEXT REFERENCES credentials (id) ON DELETE CASCADE,
    expires_at BIGINT NOT NULL
);

CREATE INDEX browser_codes_of_account ON browser_codes (account_id, expires_at);
CREATE INDEX browser_codes_of_parent ON browser_codes (parent_id) WHERE parent_id IS NOT NULL;
