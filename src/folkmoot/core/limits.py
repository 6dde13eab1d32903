"""The limits of `core`: sizes, counts and times that no setting changes."""

from __future__ import annotations

from typing import Final

MAX_CAPABILITIES: Final = 4096
"""Capabilities of one principal."""
MAX_CONSTRAINED: Final = 256
"""Values of all payload constraints and targets of one principal."""
MAX_CACHED_VERDICTS: Final = 512
"""Verdicts of one principal in memory; with more, all are forgotten."""
MAX_CONSTRAINT_DEPTH: Final = 16
"""How deep a payload constraint may be nested."""
MAX_CONSTRAINT_VALUES: Final = 64
"""Values of one payload constraint."""
MAX_CONSTRAINT_STRING: Final = 256
"""Characters of a string in a payload constraint."""
MAX_SEARCHED: Final = 65_536
"""Characters of a value in which a constraint's pattern is searched."""
MAX_KIND_BYTES: Final = 1280
"""Size of a kind."""
MAX_KIND_NAME: Final = 32
"""Characters of the protocol and the operation of a kind."""
MAX_METHOD: Final = 128
"""Characters of the method of a kind."""
MAX_CONTEXT_BYTES: Final = 1024
"""Size of the context of a kind."""
MAX_ID_DISTANCE: Final = 512
"""Bytes from either end of an invalid message in which its id is looked for."""
MAX_PATH: Final = 4096
"""Characters of a path that is compared; a longer one is unclear."""
MAX_PATH_ESCAPES: Final = 3
"""How often escapes within escapes of a path are read; one with more is unclear."""
MAX_CAPABILITIES_TOLD: Final = 64
"""Capabilities that a refusal lists."""
MAX_RATE_KEYS: Final = 100_000
"""Keys of one rate limit in memory; with more, the oldest are forgotten."""
MAX_TARGETS: Final = 64
"""Targets of one capability."""
MAX_TARGET: Final = 64
"""Characters of one target."""
MAX_REDIRECT: Final = 1024
"""Characters of an address that an app's sign-in leads back to."""
MAX_REDIRECTS_OF_APP: Final = 10
"""Such addresses of one app."""
MAX_APP_NAME: Final = 80
"""Characters of an app's name that are kept."""
MAX_REGISTRATION_BYTES: Final = 16 * 1024
"""Size of an app's request to be registered."""
MAX_APP_DOCUMENT_BYTES: Final = 10 * 1024
"""Size of the document that an app's id leads to."""
MAX_CLIENT_ID: Final = 2048
"""Characters of an app's id, which holds what was registered."""
MAX_OAUTH_PARAMETERS: Final = 32
"""Parameters of a request by OAuth."""
MAX_OAUTH_PARAMETER: Final = 2048
"""Characters of one such parameter."""
MAX_TOKEN_REQUEST_BYTES: Final = 8 * 1024
"""Size of a request for tokens, or to revoke one."""
MAX_CHALLENGE: Final = 4096
"""Characters of a server's challenge that are read."""
MAX_UPSTREAM_ANSWER_BYTES: Final = 64 * 1024
"""Size of what an authorization server of another answers: its metadata, an id, tokens."""
MAX_UPSTREAM_TOKEN: Final = 16 * 1024
"""Characters of a token of another server."""
MAX_STEP_UPS: Final = 3
"""How often one call can ask its person for more scope."""
