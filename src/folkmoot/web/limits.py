"""The limits of `web`: sizes, counts and times that no setting changes."""

from __future__ import annotations

from typing import Final

MAX_SEARCH_WORDS: Final = 8
"""Words of a search in the docs."""
MAX_SEARCH_CHARACTERS: Final = 100
"""Characters of a search in the docs."""
MAX_SEARCH_RESULTS: Final = 30
"""Sections that a search shows."""
MAX_EXCERPT: Final = 160
"""Characters of a section that a result shows."""
MAX_INVITE_MESSAGE: Final = 2_000
"""Characters of the inviter's message on the page; all of it arrives as mail."""
MAX_LANDING_PAGES: Final = 16
"""Landing pages that are kept: one for each address a hub is reached by."""
