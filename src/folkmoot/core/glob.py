"""Globs: `*` stands for any run of characters, none included. No other character is special.

Matching, covering and intersecting look at each literal once, from left to right: there is no
backtracking, so no pattern and no text can make them slow.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache


class Glob:
    """One compiled pattern. `matches(text)` tells whether the whole text fits."""

    __slots__ = ("_prefix", "_suffix", "beginning", "is_any", "is_literal", "matches", "pattern")

    matches: Callable[[str], bool]

    def __init__(self, pattern: str) -> None:
        while "**" in pattern:
            pattern = pattern.replace("**", "*")
        self.pattern = pattern
        self.is_any = pattern == "*"
        self._prefix, *rest = pattern.split("*")
        self.is_literal = not rest
        self._suffix = rest[-1] if rest else ""
        self.beginning = self._prefix if rest == [""] else None
        """How a text has to begin, where that is all that is asked of it."""
        if self.is_literal:
            self.matches = pattern.__eq__
        elif self.beginning is not None:
            self.matches = _begins_with(self._prefix)
        else:
            self.matches = _fits(self._prefix, tuple(rest[:-1]), self._suffix)

    def covers(self, other: Glob) -> bool:
        """Whether everything the other matches is matched here.

        The other's `*` is no character of our literals, so only a `*` of ours can take it: then it
        takes whatever that `*` stands for.
        """
        return self.matches(other.pattern)

    def intersects(self, other: Glob) -> bool:
        """Whether some text is matched by both.

        Two globs with a `*` meet as soon as their ends agree: the middles fit one after the other.
        """
        if self.is_literal:
            return other.matches(self._prefix)
        if other.is_literal:
            return self.matches(other._prefix)
        return _agree(self._prefix, other._prefix, str.startswith) and _agree(
            self._suffix, other._suffix, str.endswith
        )

    def __repr__(self) -> str:
        return f"Glob({self.pattern!r})"


def _begins_with(prefix: str) -> Callable[[str], bool]:
    return lambda text: text.startswith(prefix)


def _fits(prefix: str, middles: tuple[str, ...], suffix: str) -> Callable[[str], bool]:
    shortest = len(prefix) + len(suffix)

    def matches(text: str) -> bool:
        if len(text) < shortest or not (text.startswith(prefix) and text.endswith(suffix)):
            return False
        at, end = len(prefix), len(text) - len(suffix)
        for middle in middles:
            at = text.find(middle, at, end)
            if at < 0:
                return False
            at += len(middle)
        return True

    return matches


@lru_cache(maxsize=4096)
def glob(pattern: str) -> Glob:
    """The compiled pattern; equal patterns are one object."""
    return Glob(pattern)


def _agree(a: str, b: str, begins: Callable[[str, str], bool]) -> bool:
    return begins(a, b) or begins(b, a)
