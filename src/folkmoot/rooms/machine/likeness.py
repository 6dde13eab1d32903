"""Names of participants: their grammar, and which of them could be mistaken for each other.

Handles are plain ASCII, so what is left to look alike are digits for letters, letters that differ
by a stroke, and separators.
"""

from __future__ import annotations

import re
from typing import Final

from folkmoot.core.errors import NameRefused

HUB: Final = ("gateway", "system", "folkmoot")
"""Names that would speak for the hub."""

NAME: Final = re.compile(r"[a-z][a-z0-9_-]{1,31}")

_LETTERS: Final = str.maketrans("0134578i", "oleastbl", "_-")
_PAIRS: Final = (("rn", "m"), ("vv", "w"))


def skeleton(name: str) -> str:
    """What a hasty eye reads; two names with one skeleton could be mistaken for each other."""
    seen = name.translate(_LETTERS)
    for pair, letter in _PAIRS:
        seen = seen.replace(pair, letter)
    return seen


def check_name(name: str) -> None:
    """Refuse a name that is none, or that could be taken for the hub's own."""
    if not NAME.fullmatch(name):
        raise NameRefused(
            "A participant's name is 2 to 32 lower-case letters, digits, underscores and hyphens, "
            "and begins with a letter."
        )
    if skeleton(name) in _HUB:
        raise NameRefused(f"The name {name} could be mistaken for the hub itself.")


_HUB: Final = frozenset(skeleton(name) for name in HUB)
