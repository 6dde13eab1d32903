"""What someone may do in a room, as far as their own capabilities tell.

The hub decides. This is for not offering what it would refuse; where the capabilities cannot be
judged here, everything is offered.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final

from folkmoot.core.capability import Rights, capability
from folkmoot.core.errors import FolkmootError
from folkmoot.core.kindcheck import effective
from folkmoot.core.kinds import parse

MOST_TOLD: Final = 64
"""Capabilities that a hub tells; of someone who holds more, nothing can be said."""


class Holder:
    """Someone in a room; `held` answers the capabilities they hold at the moment."""

    def __init__(self, held: Callable[[], tuple[Any, ...]]) -> None:
        self._held = held
        self._known: tuple[Any, ...] | None = None
        self._rights: Rights | None = None

    def may(self, kind: str, payload: dict[str, Any] | None = None, to: Sequence[str] = ()) -> bool:
        """Whether a message of a kind would be allowed; without `to`, to anyone."""
        rights = self._current()
        if rights is None:
            return True
        try:
            parsed = parse(kind)
            if parsed.protocol == "mcp" and payload is not None:
                parsed = effective(parsed, payload)
        except FolkmootError:
            return True
        return rights.allows(parsed, payload, to) or (not to and rights.may_allow(parsed))

    def may_some(self, pattern: str) -> bool:
        """Whether something of what a pattern matches might be allowed."""
        rights = self._current()
        if rights is None:
            return True
        wanted = capability(pattern)
        held = map(capability, rights)
        return any(not one.denies and one.intersects(wanted) for one in held)

    def _current(self) -> Rights | None:
        held = self._held()
        if held is not self._known:
            self._known = held
            self._rights = None
            if len(held) < MOST_TOLD:
                with suppress(FolkmootError):
                    self._rights = Rights(held)
        return self._rights
