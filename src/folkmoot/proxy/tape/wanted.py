"""Which messages of a tape someone wants to see."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from folkmoot.core.capability import Capability, capability
from folkmoot.core.envelope import MessageDirection
from folkmoot.core.errors import KindError
from folkmoot.core.glob import Glob, glob
from folkmoot.core.kinds import Kind, make
from folkmoot.proxy.tape.timeline import Moment


class Wanted(msgspec.Struct, frozen=True):
    """Conditions that a message must meet, all of those that are set."""

    methods: tuple[Glob, ...] = ()
    kinds: tuple[Capability, ...] = ()
    direction: MessageDirection | None = None
    text: str = ""
    """In lower case; letters of either case are found by it."""
    errors: bool = False
    session: str = ""
    """How the session's id begins."""
    first: int = 0
    last: int | None = None
    slower: float | None = None
    """Only answers that took longer, in seconds."""

    @classmethod
    def of(
        cls,
        *,
        methods: Sequence[str] = (),
        kinds: Sequence[str] = (),
        direction: MessageDirection | None = None,
        text: str = "",
        errors: bool = False,
        session: str = "",
        first: int = 0,
        last: int | None = None,
        slower: float | None = None,
    ) -> Wanted:
        """Conditions as people write them. Raises `CapabilityError` for what is no kind."""
        return cls(
            tuple(map(glob, methods)), tuple(map(capability, kinds)), direction, text.lower(),
            errors, session, first, last, slower,
        )  # fmt: skip

    def meets(self, moment: Moment) -> bool:
        """Whether a message is wanted."""
        line = moment.line
        return (
            self.first <= line.seq
            and (self.last is None or line.seq <= self.last)
            and (self.direction is None or line.direction is self.direction)
            and (not self.errors or moment.failed)
            and (self.slower is None or self._took_longer(moment))
            and (not self.session or (line.session.id or "").startswith(self.session))
            and (not self.methods or any(each.matches(moment.method) for each in self.methods))
            and (not self.kinds or self._of_kind(moment))
            and (not self.text or self._says(moment))
        )

    def _took_longer(self, moment: Moment) -> bool:
        took = None if moment.answer is None else moment.answer.seconds
        return took is not None and self.slower is not None and took > self.slower

    def _of_kind(self, moment: Moment) -> bool:
        kind = kind_of(moment)
        if kind is None:
            return False
        allows = [each for each in self.kinds if not each.denies]
        denies = [each for each in self.kinds if each.denies]
        return (not allows or any(each.matches(kind) for each in allows)) and not any(
            each.matches(kind) for each in denies
        )

    def _says(self, moment: Moment) -> bool:
        # Decoded, so that an escape in the JSON hides nothing from one who looks for its letter.
        return self.text in msgspec.json.encode(moment.members).decode().lower()


def kind_of(moment: Moment) -> Kind | None:
    """The kind of a message; a response's is that of its request."""
    if not moment.method:
        return None
    try:
        return make("mcp", moment.shape, moment.method, moment.name or None)
    except KindError:
        return None
