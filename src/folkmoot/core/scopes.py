"""Scopes: the part of an account's rights that a credential has.

A scope is words: `mail.read contacts rooms:square`. A word is the name of a scope, and may name the
one room or server that it is for. `*` is every scope but `operate`, which must be named.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, Literal, NamedTuple

from msgspec import Struct

ALL: Final = "*"
OPERATE: Final = "operate"
"""To run the hub. Nothing else stands for it."""
OPERATING: Final = f"{ALL} {OPERATE}"
ROOM: Final = "room"
ABOUT: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
"""A room's name, or a server's namespace."""


class ScopeRow(Struct, frozen=True):
    """One scope: its name and what it allows."""

    name: str
    description: str
    about: str = ""
    """What it can be for alone: one room, or one server."""
    app: Literal["never", "asked", "offered", "default"] = "never"
    """When a page offers it for an app: never, if the app asks, always, or always and chosen."""


SCOPES: Final = (
    ScopeRow("mail.read", "Read mail and threads, mark them and sort them.", app="default"),
    ScopeRow("mail.send", "Send mail and answer it.", app="default"),
    ScopeRow("mail.delete", "Delete messages and threads.", app="asked"),
    ScopeRow(
        "contacts", "See and change contacts, blocks and invites; find people.", app="default"
    ),
    ScopeRow("account.read", "See your profile and your tokens.", app="default"),
    ScopeRow("account", "Change or delete your account; create and revoke tokens."),
    ScopeRow("rooms", "Take part in rooms: read, speak, propose.", ROOM, "default"),
    ScopeRow("rooms.manage", "Manage rooms: settings, invitations, rights.", ROOM, "asked"),
    ScopeRow("ask", "Ask people before doing something; see what they decide.", app="default"),
    ScopeRow("decide", "Approve, reject and withdraw proposals.", ROOM, "offered"),
    ScopeRow("tools", "Use the servers behind the hub.", "server", "default"),
    ScopeRow(OPERATE, "Run the hub. Only an operator can create such a token."),
)
NAMES: Final = {row.name: row for row in SCOPES}


def row_of(word: str) -> ScopeRow | None:
    """The row of a word of a scope; None where it is none, or is for what it cannot be for."""
    name, colon, about = word.partition(":")
    row = NAMES.get(name)
    if colon and row is not None and not (row.about and ABOUT.fullmatch(about)):
        return None
    return row


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
