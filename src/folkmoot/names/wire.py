"""Canonical names as model APIs take them, and back.

MCP names may hold `[A-Za-z0-9_.-]`, model APIs take `[A-Za-z0-9_-]{1,64}`, and one name outside of
that makes them refuse the whole request. The *safe* style writes the separator as one underscore;
no namespace contains one, so the first underscore splits the name again.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable

NameStyle: TypeAlias = Literal["safe", "canonical"]
STYLES: tuple[NameStyle, ...] = ("safe", "canonical")

RESERVED_NAMESPACES = frozenset({"msg", "room", "chat", "mmp", "folkmoot"})
"""The hub's own, joined to a tool by `/`; every other namespace is joined by `:`."""

MOST_CHARACTERS = 64
DIGITS = 8

OURS = re.compile(r"(msg|room|chat|mmp|folkmoot)/([A-Za-z0-9_-]+)")
THEIRS = re.compile(r"([a-z][a-z0-9]*):([A-Za-z0-9_-]+)")
UNSAFE = re.compile(r"[^A-Za-z0-9_-]")


def safe_name(canonical: str) -> str:
    """The safe spelling of a name.

    A name that is too long, or that would not split back into itself, ends in digits of its own
    hash instead, which stay the same for as long as the name does.
    """
    return _plain(canonical) or _marked(canonical)


def _marked(canonical: str, attempt: int = 0) -> str:
    import hashlib  # costs more than everything else here

    # A name made to look like another's marked spelling cannot foresee all the attempts.
    salted = f"{attempt}:{canonical}" if attempt else canonical
    mark = hashlib.sha256(salted.encode("utf-8", "surrogatepass")).hexdigest()[:DIGITS]
    return f"{UNSAFE.sub('_', canonical)[: MOST_CHARACTERS - DIGITS - 1]}_{mark}"


def _plain(canonical: str) -> str | None:
    """The name with its separator written as an underscore, where that can be read back."""
    parts = OURS.fullmatch(canonical) or THEIRS.fullmatch(canonical)
    if parts is None or len(canonical) > MOST_CHARACTERS:
        return None
    if parts.re is THEIRS and parts[1] in RESERVED_NAMESPACES:
        return None
    return f"{parts[1]}_{parts[2]}"


class WireNames:
    """The table of one catalogue: each name has exactly one spelling in each style."""

    def __init__(self, names: Iterable[str]) -> None:
        # Those that need no hash come first, so nothing takes a plain spelling from its owner.
        wanted = sorted(set(names), key=lambda name: (_plain(name) is None, name))
        self._safe = dict.fromkeys(wanted, "")
        self._canonical: dict[str, str] = {}
        for name in wanted:
            spelled, attempt = safe_name(name), 0
            while spelled in self._canonical or spelled in self._safe:
                attempt += 1
                spelled = _marked(name, attempt)
            self._safe[name] = spelled
            self._canonical[spelled] = name

    def spell(self, canonical: str, style: NameStyle) -> str:
        """A name of the catalogue as the style writes it."""
        return self._safe[canonical] if style == "safe" else canonical

    def canonical(self, wire: str) -> str | None:
        """The name a spelling stands for, in either style; None when it is nobody's."""
        return wire if wire in self._safe else self._canonical.get(wire)
