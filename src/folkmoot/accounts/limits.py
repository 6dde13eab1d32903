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
APP_CODE_SECONDS: Final = 60
"""How long an app can exchange the code that it was sent back with."""
MAX_APP_CODES: Final = 20
"""Codes of one account that no app has exchanged; one more ends the oldest."""
DEVICE_CODE_SECONDS: Final = 600
"""How long a person can allow what a program on a device asks for."""
DEVICE_PAUSE_SECONDS: Final = 5
"""How long a program waits before it asks again whether it was allowed."""
MAX_DEVICE_PAUSE_SECONDS: Final = 60
"""And at most, if it keeps asking too early."""
MAX_DEVICE_CODES: Final = 10_000
"""Programs on devices that wait for their person at once."""
MAX_USER_CODE: Final = 32
"""Characters of a text that is read as the code of a device."""
MAX_GRANTS: Final = 100
"""Apps that one account is connected to; one more ends the grant unused for longest."""
GRANT_UNUSED_SECONDS: Final = 90 * 86_400
"""After so long without use a grant ends."""
MAX_TOKENS_OF_GRANT: Final = 200
"""Access tokens, and refresh tokens, of one grant; one more ends the oldest."""
PASSKEY_SECONDS: Final = 300
"""How long a person can take to answer with a passkey."""
PASSKEY_SIGN_IN_SECONDS: Final = 600
"""How long after signing in a passkey can be added."""
MAX_PASSKEYS: Final = 20
"""Passkeys of one account."""
MAX_PASSKEY_ANSWER: Final = 20_000
"""Characters of what a browser answers for a passkey."""
MAX_PASSKEY_ID: Final = 1_400
"""Characters of what an authenticator calls a passkey; WebAuthn allows 1,023 bytes."""
MAX_PASSKEY_TICKET: Final = 200
"""Characters of the ticket that an answer is given back with."""
OIDC_SECONDS: Final = 600
"""How long a person can take to sign in at their company's provider."""
OIDC_PROVIDER_SECONDS: Final = 300
"""For how long what the provider says of itself is believed."""
OIDC_FAILURE_SECONDS: Final = 5
"""And how long it is left alone that could not be asked."""
OIDC_SKEW_SECONDS: Final = 60
"""How far the provider's clock can be from the hub's."""
MAX_OIDC_TICKET: Final = 3_900
"""Characters of the ticket that a browser keeps meanwhile, in a cookie."""
MAX_OIDC_SUBJECT: Final = 255
"""Characters of what the provider calls a person; OpenID Connect allows no more."""
MAX_OIDC_GROUPS: Final = 500
"""Groups that are read of one person; further ones are left out."""
MAX_OIDC_GROUP: Final = 100
"""Characters of the name of such a group; one with a longer name is left out."""
MAX_RECOVERY_CODE: Final = 64
"""Characters of a text that is read as a recovery code."""
REDIRECT_SECONDS: Final = 2_592_000
"""How long an old handle leads to its owner, and a deleted one stays reserved."""
MAX_REDIRECTS: Final = 10
"""Old handles that may lead to one account at once, so that nobody hoards names by renaming."""
INVITE_SECONDS: Final = 7 * 86_400
"""How long an invite for a handle can be claimed unless the operator says otherwise."""
SET_UP_SECONDS: Final = 86_400
"""How long the link that sets up a hub can be used, while nobody has an account."""
MAX_SET_UP: Final = 200
"""Characters of its secret."""
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
SIGN_IN_SECONDS: Final = 600
"""How long a person can take to consent at a server behind the hub."""
