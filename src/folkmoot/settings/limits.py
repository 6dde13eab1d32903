"""The limits of `settings`: sizes, counts and times that no setting changes."""

from __future__ import annotations

from typing import Final

MAX_VALUE: Final = 32_768
"""Characters of a variable or a header of a backend."""
MAX_BACKEND_NAME: Final = 64
"""Characters of the name of a backend."""
SHOWN_CHARACTERS: Final = 40
"""Characters of a wrong value that an error repeats."""
MAX_FILE_BYTES: Final = 1_048_576
"""The largest settings file."""
PIPE_SECONDS: Final = 5.0
"""How long a pipe that is given as a file may be silent."""
MAX_MEMBERS: Final = 10_000
"""Handles in a group."""
MAX_PATTERNS: Final = 1_000
"""Capabilities of one handle or group."""
MAX_JSON_DEPTH: Final = 100
"""How deep objects and lists may be nested in the file of an MCP client."""
MAX_PROBLEMS: Final = 50
"""Problems of one settings file that are listed."""
MAX_NODE_MESSAGE_BYTES: Final = 4_194_304
"""The largest message of a room on several nodes."""
MAX_FINGERPRINTS: Final = 1_000
"""Settings of backends and rights that nodes compare."""
MAX_ARGUMENT: Final = 32_768
"""Characters of one argument of a command."""
MAX_TOOL_PATTERN: Final = 256
"""Characters of the name of a tool, or of a pattern for such names."""
MAX_ASK_RULES: Final = 100
"""Rules of `[asks]`."""
