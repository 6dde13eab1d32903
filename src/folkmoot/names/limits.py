"""The limits of `names`: sizes, counts and times that no setting changes."""

from __future__ import annotations

from typing import Final

MAX_VERSION: Final = 64
"""Characters of a version, such as that since when a name is deprecated."""
SECONDS_BETWEEN_LINES: Final = 60.0
"""A deprecated tool that is called often logs one line in this time, which counts its calls."""
MAX_CELL: Final = 300
"""Characters of a cell in `NAMESPACES.md`."""
MAX_PROJECT_FILE_BYTES: Final = 4 * 1024 * 1024
"""The largest file of a project that is read: a listing, `NAMESPACES.md`, `pyproject.toml`."""
MAX_SERVER_NAME: Final = 64
"""Characters of the name of a new server."""
MAX_DIFFERENCES: Final = 5
"""Of a register that is out of date, how many are told."""
MAX_NAME: Final = 1024
"""Characters of a name that its words are taken from; its mark is made from all of them."""
MAX_SHOWN: Final = 80
"""Characters of a name that an error repeats."""
MAX_GUESS: Final = 512
"""Longer texts are no name that someone mistyped."""
MAX_SLUG: Final = 256
"""Enough to tell what is wrong with a slug."""
