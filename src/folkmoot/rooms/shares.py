"""Shares: how much of a room's history each author has, and what goes when it is too much.

The authors with most lose their oldest messages, down to a share that all can have. Whoever has
less than that loses nothing, so a flood pushes out itself and nobody else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from folkmoot.quotas import ROOM_BYTES
from folkmoot.rooms.machine import Append

GATEWAY_AUTHOR: Final = ""
"""The author of what the gateway says about nobody."""


class Share(NamedTuple):
    """What an author has in a room."""

    messages: int = 0
    bytes: int = 0

    def plus(self, size: int) -> Share:
        """The share with one message more."""
        return Share(self.messages + 1, self.bytes + size)

    def sum(self, other: Share) -> Share:
        """Both together."""
        return Share(self.messages + other.messages, self.bytes + other.bytes)

    def minus(self, other: Share) -> Share:
        """What is left without a part of it."""
        return Share(self.messages - other.messages, self.bytes - other.bytes)


class Trimmed(NamedTuple):
    """What is left of a history after the oldest messages of some authors went."""

    removed: list[int]
    """The `seq` of each message that goes."""
    oldest_seq: int | None
    """The `seq` of the first message that is left; None where none is."""


def author_of(message: Append) -> str:
    """Whose share a message counts towards."""
    return message.account or message.about or GATEWAY_AUTHOR


def size_of(message: Append) -> int:
    """What a message counts for."""
    return ROOM_BYTES + len(message.data)


def shares_of(messages: Iterable[Append]) -> dict[str, Share]:
    """What each author has of some messages."""
    found: dict[str, list[int]] = {}
    # Every message that is stored comes by here.
    for message in messages:
        author = message.account or message.about or GATEWAY_AUTHOR
        share = found.get(author)
        if share is None:
            found[author] = [1, ROOM_BYTES + len(message.data)]
        else:
            share[0] += 1
            share[1] += ROOM_BYTES + len(message.data)
    return {author: Share(*share) for author, share in found.items()}


def fair_share(amounts: Iterable[int], most: int) -> int:
    """The largest share at which all together have at most so much; whoever has less keeps it."""
    left = sorted(amounts)
    total, count = sum(left), len(left)
    if total <= most:
        return total
    rest = most
    for amount in left:
        if amount * count > rest:
            return rest // count
        rest -= amount
        count -= 1
    return rest


class Trimming:
    """Decides, message by message from the oldest on, which of a history go."""

    def __init__(self, shares: Mapping[str, Share], most: int, most_bytes: int) -> None:
        messages = fair_share((share.messages for share in shares.values()), most)
        size = fair_share((share.bytes for share in shares.values()), most_bytes)
        self._excess = {
            author: [share.messages - messages, share.bytes - size]
            for author, share in shares.items()
            if share.messages > messages or share.bytes > size
        }

    @property
    def is_done(self) -> bool:
        """Whether nobody has more than a fair share any longer."""
        return not self._excess

    def goes(self, author: str, size: int) -> bool:
        """Whether the next message goes."""
        excess = self._excess.get(author)
        if excess is None:
            return False
        excess[0] -= 1
        excess[1] -= size
        if excess[0] <= 0 and excess[1] <= 0:
            del self._excess[author]
        return True

    def split(self, messages: Iterable[Append]) -> tuple[list[Append], list[Append]]:
        """The messages that go, and those before the last of them that stay."""
        gone: list[Append] = []
        kept: list[Append] = []
        stayed = 0
        for message in messages:
            if not self._excess:
                break
            author = message.account or message.about or GATEWAY_AUTHOR
            if self.goes(author, ROOM_BYTES + len(message.data)):
                gone.append(message)
                stayed = len(kept)
            else:
                kept.append(message)
        return gone, kept[:stayed]
