"""Ids that nobody can guess and that sort by time, so that an index of them grows at its end."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

SHORT: Final = 8
"""Characters of an id that people are shown, and that are enough to name it by."""
WHOLE: Final = 36
_FORM: Final = re.compile(r"[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
_CHARACTERS: Final = frozenset("0123456789abcdef-")

MANY: Final = 256
_RANDOM_BYTES: Final = 8
_COUNTS: Final = tuple(f"{count:03x}-8" for count in range(0x1000))
"""How the ids of one millisecond go on, in their order."""
_GROUPS: Final = tuple(f"{group:03x}-" for group in range(0x1000))


class Uuids:
    """Makes UUIDs of version 7, each after the one before, however the clock is set.

    What follows the millisecond counts within it; the rest is random, and got for many at once:
    to ask the system each time would cost more than the id.
    """

    __slots__ = ("_count", "_head", "_moment", "_now", "_random", "_tails")

    def __init__(self, now: Callable[[], float], random: Callable[[int], bytes]) -> None:
        self._now = now
        self._random = random
        self._moment, self._count = -1, len(_COUNTS)
        self._head = ""
        self._tails: list[str] = []

    def __call__(self) -> str:
        """The next id."""
        moment = int(self._now() * 1000)
        if moment > self._moment or self._count == len(_COUNTS):
            self._begin(moment)
        count, self._count = self._count, self._count + 1
        if not self._tails:
            self._tails = self._more()
        return self._head + _COUNTS[count] + self._tails.pop()

    def many(self, count: int) -> list[str]:
        """The next ids, so many of them, by one look at the clock.

        They differ by their count alone: whoever sees one can guess the others, but none that is
        made later.
        """
        most = len(_COUNTS)
        if count > most:
            return self.many(most) + self.many(count - most)
        moment = int(self._now() * 1000)
        if moment > self._moment or self._count + count > most:
            self._begin(moment)
        first, self._count = self._count, self._count + count
        if not self._tails:
            self._tails = self._more()
        head, tail = self._head, self._tails.pop()
        return [f"{head}{number}{tail}" for number in _COUNTS[first : first + count]]

    def _begin(self, moment: int) -> None:
        """Count from the first of a millisecond on, or of the one after the last."""
        self._moment = moment = max(moment, self._moment + 1)
        self._head = f"{moment >> 16:08x}-{moment & 0xFFFF:04x}-7"
        self._count = 0

    def _more(self) -> list[str]:
        """The ends of many ids: the digits after the variant."""
        random = self._random(MANY * _RANDOM_BYTES)
        groups, nodes = memoryview(random[: 2 * MANY]).cast("H"), random[2 * MANY :]
        digits = nodes.hex("-", _RANDOM_BYTES - 2).split("-")
        return [_GROUPS[group & 0xFFF] + node for group, node in zip(groups, digits, strict=True)]


def is_uuid(text: str) -> bool:
    """Whether a text is an id, in small letters or in capitals."""
    return _FORM.fullmatch(text) is not None


def as_stored(text: str) -> str:
    """An id in small letters, as the hub writes it; a text that is no id stays as it is."""
    return text.lower() if is_uuid(text) else text


def is_beginning(text: str) -> bool:
    """Whether a text can be the beginning of an id, and is long enough to name one."""
    return SHORT <= len(text) < WHOLE and set(text) <= _CHARACTERS
