"""Events: the subjects on which one part tells the others what has changed.

A cache forgets, and a connection ends, when it hears of a change. Mail has a subject of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from folkmoot.core.ports import Event

ACCOUNTS: Final = "account.*"
"""Something about an account is not as it was: `accounts.events` says what."""
CREDENTIALS: Final = "credential.*"
"""A credential opens nothing any more, nor do those it is the parent of; `account` had it."""
GRANTS: Final = "grants.*"
"""An account was granted something at the hub, or something was revoked."""
GROUPS: Final = "groups.*"
"""The groups that its company told of an account, with the times of the sign-ins."""
ROOMS: Final = "room.*"
"""A room was set anew or removed: by whom, and whether it is gone."""
BACKENDS: Final = "backend.*"
"""Lists of a backend are not what they were; `lists` names them."""
TASKS: Final = "task.*"
"""A backend says that a task of an account's has changed; `id` names it."""
PINS: Final = "pins.*"
"""What is pinned of a backend's tools is not what it was: by whom, and whether it was accepted."""
SETTINGS: Final = "settings"
"""The settings of backends and rights were changed."""
SENT: Final = "sent.*"
"""An account sent a message: its id and its thread."""
LAST_READ: Final = "last_read.*"
"""An account has looked at threads in which nothing was unread; nobody is notified of it."""
CONTACTS: Final = "contacts.*"
"""An account added, removed, blocked or unblocked somebody; `handle` and `change`."""
TOKENS: Final = "tokens.*"
"""An account has one token more, or one less: its `id` and the `change`."""
MEMBERS: Final = "members.*"
"""What an account or guest is to a room: its number, its name and the `state`, null for nothing."""
UNREAD: Final = "unread.*"
"""An account or a guest was mentioned in a room, or read it: its name as `room`, and `change`."""
SESSIONS: Final = "session.*"
"""A client's session, named by a hash of its id, is at another `process`, or closed for good."""
EXCESS: Final = "excess.*"
"""A process is to end a session that an `account` does not use, so that it can have another."""
SAID: Final = "said.*"
"""Messages became part of a room: the last `seq`, who came and went, proposals, rights, talk."""
ASKS: Final = "asks.*"
"""An ask of an account's, or one that it is to decide, was made or ended: `id` and `change`."""
CONSENTS: Final = "consents.*"
"""An account's consent at a server behind the hub: its `namespace` and the `change`."""
SERVERS: Final = "server.*"
"""A server behind the hub is in another `state`."""
AUDIT: Final = "audit"
"""Lines were added to the audit log; `id` is the last of them."""
HELD: Final = "held"
"""A message is held back until someone decides, or was decided about: `proxy.held` says what."""


OF_ONE_NODE: Final = (BACKENDS, TASKS, SERVERS, SETTINGS, HELD)
"""What concerns one process of a hub alone: its settings, its links, and what it holds back."""


def subject(pattern: str, id_: str) -> str:
    """Where events about one of these are published."""
    return f"{pattern.removesuffix('*')}{id_}"


def about(event: Event) -> str:
    """Which of these an event is about."""
    return event.subject.partition(".")[2]
