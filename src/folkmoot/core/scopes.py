"""Scopes: the part of an account's rights that a credential has.

A scope is words: `mail.read contacts rooms:square`. A word is the name of a scope, and may name the
one room or server that it is for. `*` is every scope but `operate`, which must be named.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple

from msgspec import Struct

ALL: Final = "*"
OPERATE: Final = "operate"
"""To run the hub. Nothing else stands for it."""


class Need(NamedTuple):
    """The scope that an operation is in, and the argument that says which room it is about."""

    scope: str
    """Empty where it needs none."""
    about: str = ""
    lesser: tuple[str, str, str] | None = None
    """An argument, one value of it, and the scope that is enough for that."""


class Scope(Struct, frozen=True, gc=False):
    """One compiled scope."""

    text: str
    words: frozenset[str]
    names: frozenset[str]
    """The words without what they are for."""

    @property
    def is_whole(self) -> bool:
        """Whether it takes nothing from an account's rights."""
        return ALL in self.words

    def has(self, name: str, about: str = "") -> bool:
        """Whether it has a scope for everything, or for this one room or server."""
        words = self.words
        return (
            name in words
            or (bool(about) and f"{name}:{about}" in words)
            or (ALL in words and name != OPERATE)
        )

    def may_have(self, name: str) -> bool:
        """Whether it has a scope for at least one room or server."""
        return name in self.names or self.has(name)

    def covers(self, other: Scope) -> bool:
        """Whether this scope allows everything the other one allows."""
        return all(self.has(*word.split(":", 1)) for word in other.words)


@lru_cache(maxsize=4096)
def scope(text: str) -> Scope:
    """Compile a scope; which names there are is not checked here."""
    words = frozenset(text.split())
    if ALL in words:
        words &= {ALL, OPERATE}
    names = frozenset(word.partition(":")[0] for word in words)
    return Scope(" ".join(sorted(words)), words, names)


WHOLE: Final = scope(ALL)
