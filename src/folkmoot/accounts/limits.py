"""The limits of `accounts`: sizes, counts and times that no setting changes."""

from __future__ import annotations

from typing import Final

UPKEEP_SECONDS: Final = 300.0
"""How often the last use of credentials is stored, and expired ones are removed."""
MAX_CACHED_IDENTITIES: Final = 10_000
"""Credentials that are kept in memory; the least recently used is looked up again."""
ONE_TIME_CODE_SECONDS: Final = 120
"""How long a one-time code can be used."""
MAX_BROWSER_SESSIONS: Final = 20
"""Browser sessions of one account; one more ends the one unused for longest."""
MAX_ONE_TIME_CODES: Final = 20
"""Unused one-time codes of one account; one more ends the oldest."""
MAX_RECOVERY_CODE: Final = 64
"""Characters of a text that is read as a recovery code."""
REDIRECT_SECONDS: Final = 2_592_000
"""How long an old handle leads to its owner, and a deleted one stays reserved."""
MAX_REDIRECTS: Final = 10
"""Old handles that may lead to one account at once, so that nobody hoards names by renaming."""
INVITE_SECONDS: Final = 7 * 86_400
"""How long an invite for a handle can be claimed unless the operator says otherwise."""
MAX_FORMATS: Final = 8
"""Formats of encrypted payloads that one account names."""
MAX_LABEL: Final = 100
"""Characters of a token's label."""
MAX_TOKEN_SECONDS: Final = 10 * 365 * 24 * 3600
"""The longest life of a token that expires."""
MAX_PEOPLE_PAGE: Final = 100
"""Contacts or blocked people on one page."""
MAX_GRAM: Final = 3
"""Characters of a gram, which the search index is made of."""
MAX_QUERY_GRAMS: Final = 8
"""Grams of a query that are looked up."""
MAX_USERS_COUNTED: Final = 800
"""Users that are counted to find the rarest of a few grams: some 7,000 steps of SQLite."""
MAX_USERS_FOUND: Final = 50
"""People that one search answers."""
