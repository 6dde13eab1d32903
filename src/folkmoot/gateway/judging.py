"""What a backend lists held against what was pinned, and what has to be done about it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Final, Literal, TypeAlias

import msgspec
from msgspec import Struct

from folkmoot.gateway.mapping import canonical_name
from folkmoot.gateway.model import Definition
from folkmoot.gateway.queries_pins import Definite

PINNED: Final = ("name", "title", "description", "inputSchema", "outputSchema", "annotations")
"""The members of a definition that are pinned; `_meta` and icons may change."""
MOST_PINS: Final = 20_000
"""Of one backend; further tools of it are not shown."""
MOST_CHARACTERS: Final = 64 * 1024 * 1024
"""What all definitions of one backend have together that are kept, pinned ones and changed ones.

Beyond it a new tool is not shown, and what a tool has become is not kept, so it stays held back.
"""

INSTRUCTIONS: Final = ""
"""The name under which a backend's instructions are pinned: no tool can have it."""

NEVER: Final = ""
"""The hash of a tool that was never accepted: it came after the backend's first inventory."""

Verdict: TypeAlias = Literal["new", "same", "changed", "held", "unread", "refused"]
"""`held` is a tool that came later and waits to be accepted; `unread` one of a first inventory that
was not read to its end, of which nothing is accepted yet.
"""
_encode = msgspec.json.Encoder(order="sorted").encode


class Judged(Struct, frozen=True):
    """What is to be thought of a tool, and the pinned definition of one that has changed."""

    verdict: Verdict
    pinned: Definition | None = None


class Pin(Struct, gc=False):
    """What is at hand of a pin: the hashes of what was pinned and of what it became, and how long
    the two definitions are.
    """

    hash: str
    size: int
    changed_hash: str | None = None
    changed_size: int = 0


class Judging:
    """The tools of a backend, sorted by what has to be done about them."""

    def __init__(
        self,
        namespace: str,
        held: dict[str, Pin],
        tools: Iterable[Definition],
        *,
        trusted: bool,
        hold_new: bool,
        whole: bool,
    ) -> None:
        self.verdicts: dict[str, Verdict] = {}
        """By the names that the backend lists now."""
        self.pinned_as: dict[str, str] = {}
        """The names that their pins have."""
        self.pin: list[Definite] = []
        self.hold: list[Definite] = []
        """New tools that are kept without being accepted."""
        self.note: list[Definite] = []
        self.back: list[str] = []
        self.repinned = 0
        self._namespace = namespace
        self._held = held
        self._hold_new = hold_new and not trusted
        self._first = not held.keys() - {INSTRUCTIONS}
        self._whole = whole
        self._twins: dict[str, str] | None = None
        self._room = MOST_PINS - len(held)
        self._space = MOST_CHARACTERS - sum(pin.size + pin.changed_size for pin in held.values())
        for tool in tools:
            now = pinned_part(tool)
            name = self.pinned_as[now.name] = self._pinned_as(now.name)
            self.verdicts[now.name] = self._judge(now._replace(name=name), trusted=trusted)

    @property
    def writes(self) -> bool:
        """Whether anything is to be written."""
        return bool(self.pin or self.hold or self.note or self.back)

    @property
    def changed(self) -> bool:
        """Whether anything has changed."""
        return "changed" in self.verdicts.values()

    def _pinned_as(self, own: str) -> str:
        """The name under which a tool was pinned.

        Another name of the backend's own may be the same name here: `getData` is no new tool where
        `get_data` was one.
        """
        if own in self._held:
            return own
        if self._twins is None:
            named = self._held.keys() - {INSTRUCTIONS}
            self._twins = {canonical_name(self._namespace, each): each for each in named}
        return self._twins.get(canonical_name(self._namespace, own), own)

    def _judge(self, now: Definite, *, trusted: bool) -> Verdict:
        pin, size = self._held.get(now.name), len(now.definition)
        if pin is None:
            return self._judge_new(now, size)
        if pin.hash == NEVER:
            return self._judge_held(now, pin, size)
        if pin.hash == now.hash:
            if pin.changed_hash is not None:
                self.back.append(now.name)
            return "same"
        if trusted:
            if not self._takes(size - pin.size - pin.changed_size):
                return "refused"
            self.pin.append(now)
            self.repinned += 1
            return "same"
        if pin.changed_hash != now.hash and self._takes(size - pin.changed_size):
            self.note.append(now)
        return "changed"

    def _judge_new(self, now: Definite, size: int) -> Verdict:
        if self._first and not self._whole:
            return "unread"
        self._room -= 1
        if self._room < 0 or not self._takes(size):
            return "refused"
        # Those of a hub that did not know of instructions yet have reached nobody.
        if self._hold_new and not self._first and now.name != INSTRUCTIONS:
            self.hold.append(now)
            return "held"
        self.pin.append(now)
        return "new"

    def _judge_held(self, now: Definite, pin: Pin, size: int) -> Verdict:
        more = size - pin.changed_size
        if not self._hold_new:
            if not self._takes(more):
                return "refused"
            self.pin.append(now)
            return "new"
        if pin.changed_hash != now.hash and self._takes(more):
            self.note.append(now)
        return "held"

    def _takes(self, size: int) -> bool:
        """Whether there is space for so many characters more; then they are taken."""
        if size > max(self._space, 0):
            return False
        self._space -= size
        return True


def pinned_name(namespace: str, own: str) -> str:
    """What a pin is called: the canonical name of its tool, or that of the instructions."""
    return f"{namespace}://instructions" if own == INSTRUCTIONS else canonical_name(namespace, own)


def pinned_part(definition: Definition) -> Definite:
    """What is pinned of a definition, in a form that equal ones share, and its hash."""
    text = _encode({key: definition[key] for key in PINNED if definition.get(key) is not None})
    return Definite(definition["name"], hashlib.sha256(text).hexdigest(), text.decode())
