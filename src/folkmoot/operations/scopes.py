"""The scopes of credentials, a row each; each operation's row names its scope."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from folkmoot.core import errors as e
from folkmoot.core.scopes import ALL, OPERATE, Need, scope
from folkmoot.operations.limits import MAX_SCOPE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from folkmoot.operations.row import Operation

ABOUT: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
"""A room's name, or a server's namespace."""
ROOM: Final = "room"


class ScopeRow(Struct, frozen=True):
    """One scope: its name and what it allows."""

    name: str
    description: str
    about: str = ""
    """What it can be for alone: one room, or one server."""


SCOPES: Final = (
    ScopeRow("mail.read", "Read mail and threads, mark them and sort them."),
    ScopeRow("mail.send", "Send mail and answer it."),
    ScopeRow("mail.delete", "Delete messages and threads."),
    ScopeRow("contacts", "Contacts, blocked people and invites; find people."),
    ScopeRow("account.read", "See your profile and your tokens."),
    ScopeRow("account", "Change or delete your account; create and revoke tokens."),
    ScopeRow("rooms", "Take part in rooms: read, speak, propose.", ROOM),
    ScopeRow("rooms.manage", "Manage rooms: settings, invitations, rights.", ROOM),
    ScopeRow("decide", "Approve, reject and withdraw proposals.", ROOM),
    ScopeRow("tools", "Use the servers behind the hub.", "server"),
    ScopeRow(OPERATE, "Run the hub. Only an operator can create such a token."),
)
NAMES: Final = {row.name: row for row in SCOPES}


def needs_of(operations: Iterable[Operation]) -> dict[str, Need]:
    """The scope of each operation, and the argument that a scope may name; none for anyone's."""
    needs: dict[str, Need] = {}
    for row in operations:
        name = "" if row.public else row.scope
        needs[row.name] = Need(name, row.about if name else "", row.lesser)
    return needs


def check_scope(text: str) -> str:
    """A scope that someone asks for, with each word once; refused where a word is none."""
    if len(text) > MAX_SCOPE:
        raise refused(f"scope must be at most {MAX_SCOPE:,} characters.")
    words = text.split()
    if not words:
        raise refused(f"scope must name at least one of {', '.join(NAMES)}, or be {ALL}.")
    for word in words:
        name, colon, about = word.partition(":")
        if word == ALL:
            continue
        if name not in NAMES:
            raise refused(f"There is no scope {shown(name)}. Scopes: {', '.join(NAMES)}, {ALL}.")
        if colon and not NAMES[name].about:
            raise refused(f"The scope {name} takes no name: leave out {shown(':' + about)}.")
        if colon and ABOUT.fullmatch(about) is None:
            raise refused(f"{shown(word)} must name a {NAMES[name].about} after the colon.")
    return scope(text).text


def shown(word: str) -> str:
    """A word as a refusal repeats it: short and printable."""
    return repr(word if len(word) <= 64 else f"{word[:64]}…")


def refused(sentence: str) -> e.ArgumentInvalid:
    """The refusal of a scope."""
    return e.ArgumentInvalid(sentence, field="scope")
