"""PlayReport: how what a live server said compares with what is on the tape."""

from __future__ import annotations

from enum import Enum
from typing import Any

import msgspec

from folkmoot.core.message import Response, members
from folkmoot.proxy.tape.diff import Difference, differences


class Outcome(Enum):
    """What became of one recorded request."""

    SAME = "same"
    DIFFERS = "differs"
    UNANSWERED = "unanswered"
    """The server did not answer in time, or ended."""
    NOT_PLAYED = "not_played"
    """It was not sent: the tape does not hold all of it."""
    NOT_COMPARED = "not_compared"
    """The tape holds no answer to it."""


class PlayedCall(msgspec.Struct, frozen=True, omit_defaults=True):
    """One recorded request, and how its answers compare."""

    seq: int
    method: str
    outcome: Outcome
    name: str = ""
    differences: tuple[Difference, ...] = ()
    why: str = ""
    """Why it was not played, compared or answered."""


class PlayReport(msgspec.Struct, frozen=True, omit_defaults=True):
    """All of them, and what the server asked that nobody on the tape had answered."""

    calls: tuple[PlayedCall, ...]
    unexpected: tuple[str, ...] = ()

    def count(self, outcome: Outcome) -> int:
        """How many requests ended so."""
        return sum(call.outcome is outcome for call in self.calls)

    @property
    def same(self) -> bool:
        """Whether nothing differs, and something was compared if there was anything."""
        failed = self.count(Outcome.DIFFERS) + self.count(Outcome.UNANSWERED)
        compared = self.count(Outcome.SAME) > 0 or not self.calls
        return compared and not failed and not self.unexpected

    def summary(self) -> str:
        """The numbers in a line: `12 calls, 11 the same, 1 differs`."""
        total = len(self.calls)
        parts = [f"{total} call{'' if total == 1 else 's'}"]
        differ = self.count(Outcome.DIFFERS)
        parts.append(f"{self.count(Outcome.SAME)} the same")
        said = (
            (differ, "differs" if differ == 1 else "differ"),
            (self.count(Outcome.UNANSWERED), "not answered"),
            (self.count(Outcome.NOT_PLAYED), "not played"),
            (self.count(Outcome.NOT_COMPARED), "not compared"),
        )
        parts += [f"{number} {words}" for number, words in said if number]
        if self.unexpected:
            parts.append(f"{len(self.unexpected)} asked by the server and not on the tape")
        return ", ".join(parts)


def compared(recorded: Response, live: Response, ignore: tuple[str, ...]) -> list[Difference]:
    """Where two answers differ, but for what a server makes up anew each time."""
    found = differences(_said(recorded), _said(live), ignore)
    return [each for each in found if not _made_up(each)]


def _said(response: Response) -> dict[str, Any]:
    return {name: value for name, value in members(response).items() if name in ("result", "error")}


MADE_UP = frozenset(("$.result.requestState", "$.result.nextCursor", "$.result.task.taskId"))
"""What only the server understands; that it is there matters, and not what it is."""


def _made_up(difference: Difference) -> bool:
    both = isinstance(difference.recorded, str) and isinstance(difference.live, str)
    return both and difference.path in MADE_UP
