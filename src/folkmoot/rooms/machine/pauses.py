"""Who is paused in a room, and the guard that notices agents which only answer each other."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from folkmoot.core.errors import TooManyOpen
from folkmoot.rooms.machine.deadlines import Deadlines
from folkmoot.rooms.machine.model import GATEWAY, RoomBounds


class Pause(Struct, frozen=True):
    """Someone who begins nothing until resumed. Accounts are what counts; names are shown."""

    account: str
    name: str
    by: str
    """The name of who paused it; the gateway's where the loop guard did."""
    reason: str | None = None
    until: float | None = None

    @property
    def is_loop(self) -> bool:
        """Whether the loop guard holds it, so that a person's words release it."""
        return self.by == GATEWAY


class Pauses:
    """Everyone who is paused, by account, whether here or not."""

    def __init__(self, bounds: RoomBounds, deadlines: Deadlines) -> None:
        self._bounds = bounds
        self._deadlines = deadlines
        self.by_account: dict[str, Pause] = {}
        self.get = self.by_account.get
        """The pause of an account, or None."""

    def __iter__(self) -> Iterator[Pause]:
        return iter([*self.by_account.values()])

    def check_new(self, count: int) -> None:
        """Refuse one too many."""
        if len(self.by_account) + count > self._bounds.paused:
            raise TooManyOpen("As many participants are paused as can be.")

    def add(self, pause: Pause) -> None:
        """Let someone be paused, in place of a pause it had before."""
        self.by_account[pause.account] = pause
        if pause.until is None:
            self._deadlines.drop("pause", pause.account)
        else:
            self._deadlines.set("pause", pause.account, pause.until)

    def drop(self, account: str) -> Pause | None:
        """Let someone be paused no more; the pause, if there was one."""
        self._deadlines.drop("pause", account)
        return self.by_account.pop(account, None)


class LoopGuard:
    """Counts how often agents answered each other since a person last said something.

    It is memory alone: after a restart it counts from the beginning.
    """

    __slots__ = ("_last", "agents", "answers")

    def __init__(self) -> None:
        self.answers = 0
        self.agents: dict[str, str] = {}
        """The accounts of those who take part, each with its name."""
        self._last: str | None = None

    def agent_said(self, account: str, name: str) -> None:
        """An agent chatted; after another agent, that is an answer."""
        self.answers += self._last not in (None, account)
        self._last = account
        self.agents[account] = name

    def reset(self) -> None:
        """A person said something, or the agents are held."""
        self.answers, self._last = 0, None
        self.agents.clear()
