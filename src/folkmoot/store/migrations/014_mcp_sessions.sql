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
