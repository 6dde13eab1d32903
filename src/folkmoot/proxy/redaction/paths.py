"""Paths that say what else is to be left out: `$.params.arguments.ssn`, `$.result.*[*]`, `$..pin`.

They lead on into JSON that stands in a string, as if it stood there as itself.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from folkmoot.proxy.tape.places import Pattern, Place, Step

_NAMES: Final = re.compile(r"[A-Za-z_$][A-Za-z0-9_$-]*")


class Paths:
    """The configured paths, compiled. Raises `PathSyntax` for one that is none."""

    def __init__(self, paths: Sequence[str]) -> None:
        self.texts = tuple(paths)
        self._patterns = tuple(map(Pattern, paths))
        self._by_end: dict[Step | None, list[Pattern]] = {}
        for pattern in self._patterns:
            self._by_end.setdefault(pattern.last, []).append(pattern)
        self._hints = tuple(_hint(path) for path in paths)

    def __bool__(self) -> bool:
        return bool(self._patterns)

    def may_lead_into(self, raw: bytes) -> bool:
        """Whether one of them may lead to something in these bytes; wrong only by saying yes."""
        if not self._patterns:
            return False
        return b"\\u" in raw or any(hint in raw for hint in self._hints)

    def lead_to(self, place: Place) -> bool:
        """Whether one of the paths ends at a place; those above it were asked about before."""
        for end in (place[-1], None):
            for pattern in self._by_end.get(end, ()):
                if pattern.covers(place):
                    return True
        return False


def _hint(path: str) -> bytes:
    """A name that is in every message the path leads into; nothing where it has none."""
    names = _NAMES.findall(path[1:])
    return names[-1].encode() if names else b""
