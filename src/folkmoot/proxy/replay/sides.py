"""Which entries of a tape each side took part in.

An interceptor may have stopped a message, so that only its sender knows of it, and may have said
something in its place, which only the receiver does. What it said came over no transport.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from folkmoot.core.envelope import MessageDirection
from folkmoot.core.transport import UNKNOWN

if TYPE_CHECKING:
    from folkmoot.proxy.tape import Entry

STOPPED: Final = frozenset(("block", "mock"))
"""Verdicts after which a message did not reach the other side."""
SIDES: Final = (MessageDirection.CLIENT_TO_SERVER, MessageDirection.SERVER_TO_CLIENT)


def passed_client(entry: Entry) -> bool:
    """Whether the client sent or got a message."""
    return _passed(entry, sends=MessageDirection.CLIENT_TO_SERVER)


def passed_server(entry: Entry) -> bool:
    """Whether the server sent or got a message."""
    return _passed(entry, sends=MessageDirection.SERVER_TO_CLIENT)


def at_server(entry: Entry) -> Any:
    """A message as the server sent or got it."""
    return entry.envelope.message if entry.at_server is None else entry.at_server


def _passed(entry: Entry, *, sends: MessageDirection) -> bool:
    context = entry.envelope.context
    if context.direction not in SIDES:
        return False
    if entry.verdict not in STOPPED:
        return True
    made_on_the_way = context.transport == UNKNOWN
    return (context.direction is sends) is not made_on_the_way
