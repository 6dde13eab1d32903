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
