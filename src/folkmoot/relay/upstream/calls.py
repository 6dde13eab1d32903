"""Calls: what was asked of a server over one link and is not answered yet, and by whom.

What a server says meanwhile goes to the one call that it can belong to, and to nobody otherwise.
"""

from __future__ import annotations

import asyncio
import logging
from itertools import count
from typing import Any, Final

from folkmoot.core.errors import BackendBusy, FolkmootError
from folkmoot.core.message import MessageId, Notification, Response
from folkmoot.gateway.ports import Wanted
from folkmoot.mcp.wire import LEVELS, params_of

logger = logging.getLogger("folkmoot.backend")

MOST_OPEN: Final = 1024
"""Requests that one link may have unanswered; one more is refused."""
EXTENDED: Final = 10
"""Progress lets a call take longer, up to so many times as long as it may be silent."""


class Unanswered(Exception):
    """A request has no answer."""

    def __init__(self, why: FolkmootError, *, begun: bool, gone: bool) -> None:
        super().__init__(why.message)
        self.why = why
        self.begun = begun
        """Whether the server may have done what was asked."""
        self.gone = gone
        """Whether it is the link that failed, and not this request alone."""


class Late(Exception):
    """A request was not answered in time."""

    def __init__(self, seconds: float) -> None:
        super().__init__(seconds)
        self.seconds = seconds


class Call:
    """One request that the server has not answered."""

    __slots__ = (
        "answer",
        "began",
        "failure",
        "heard",
        "id",
        "level",
        "seconds",
        "sending",
        "wanted",
    )

    def __init__(self, message_id: int, wanted: Wanted, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        self.id = message_id
        self.wanted = wanted
        self.seconds = seconds
        self.answer: asyncio.Future[Response] = loop.create_future()
        self.failure: FolkmootError | None = None
        """Why the answer that is on its way is none of the server's."""
        self.sending: asyncio.Task[Any] | None = None
        """Who waits for the link to take the request, and is to be woken should that take long."""
        self.level = None if wanted.log_level is None else level_of(wanted.log_level)
        self.began = self.heard = loop.time()

    @property
    def due(self) -> float:
        """By when it has to be answered, as far as was heard of it."""
        return min(self.heard + self.seconds, self.began + EXTENDED * self.seconds)

    def expire(self, now: float) -> None:
        """Have it be late."""
        self.fail(Late(now - self.began))
        if self.sending is not None:
            self.sending.cancel()

    @property
    def late(self) -> bool:
        """Whether it was not answered in time."""
        answer = self.answer
        return answer.done() and not answer.cancelled() and isinstance(answer.exception(), Late)

    def fail(self, error: Exception) -> None:
        """Let whoever waits for the answer know that there is none."""
        if not self.answer.done():
            self.answer.set_exception(error)

    def tell(self, notice: Notification) -> None:
        """Tell whoever waits what the server says meanwhile."""
        self.heard = asyncio.get_running_loop().time()
        if self.wanted.tell is not None:
            try:
                self.wanted.tell(notice)
            except Exception:
                # What one listener gets wrong must not end a link that others share.
                logger.exception("what a server said could not be passed on")

    def wants(self, place: int) -> bool:
        """Whether log messages of a level are wanted."""
        return self.level is not None and self.level <= place


class Calls:
    """The open calls of one link."""

    def __init__(self) -> None:
        self._open: dict[MessageId, Call] = {}
        self._ids = count(1)
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._look_at = 0.0

    def __len__(self) -> int:
        return len(self._open)

    def next_id(self) -> int:
        """An id that was never used on this link."""
        return next(self._ids)

    def open(self, wanted: Wanted, seconds: float) -> Call:
        """Begin one."""
        if len(self._open) >= MOST_OPEN:
            raise BackendBusy("The server already has too many open requests.")
        call = Call(self.next_id(), wanted, seconds)
        self._open[call.id] = call
        self._look_by(call.began + seconds)
        return call

    def close(self, call: Call) -> None:
        """Have one be over, however it ended."""
        self._open.pop(call.id, None)
        if call.answer.done() and not call.answer.cancelled():
            # Whoever asked may have been told something else already.
            call.answer.exception()

    def of(self, message_id: Any) -> Call | None:
        """The open call with this id."""
        return self._open.get(message_id) if type(message_id) is int else None

    @property
    def only(self) -> Call | None:
        """The one there is, if there are no others."""
        return next(iter(self._open.values())) if len(self._open) == 1 else None

    @property
    def people(self) -> set[str]:
        """Those who wait for an answer, the hub itself left out."""
        return {call.wanted.person for call in self._open.values() if call.wanted.person}

    def progress(self, notice: Notification) -> bool:
        """Tell the call that this is progress of; whether there is one."""
        call = self.of(params_of(notice).get("progressToken"))
        if call is None or not call.wanted.progress:
            return False
        call.tell(notice)
        return True

    def log(self, notice: Notification, call: Call | None, *, anyone: bool = False) -> bool:
        """Tell the call that a log message is of, if it wants it; whether someone was told.

        `anyone` says that all calls are one person's, so that the latest that wants it will do.
        """
        place = level_of(params_of(notice).get("level"))
        place = len(LEVELS) - 1 if place is None else place
        if call is None and anyone:
            call = next((each for each in reversed(self._open.values()) if each.wants(place)), None)
        if call is None or not call.wants(place):
            return False
        call.tell(notice)
        return True

    def fail(self, error: Exception) -> None:
        """Have none of them be answered any more."""
        for call in list(self._open.values()):
            call.fail(error)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look_by(self, due: float) -> None:
        """Look for late calls by then; to look once in vain is cheaper than a timer for each."""
        if self._timer is not None:
            if self._look_at <= due:
                return
            self._timer.cancel()
        self._look_at = due
        self._timer = self._loop.call_at(due, self._look)

    def _look(self) -> None:
        self._timer = None
        now = self._loop.time()
        waiting = [call for call in self._open.values() if not call.answer.done()]
        for call in waiting:
            if call.due <= now:
                call.expire(now)
        left = [call.due for call in waiting if call.due > now]
        if left:
            self._look_by(min(left))


def level_of(level: Any) -> int | None:
    """The place of a log level among all of them."""
    return LEVELS.index(level) if level in LEVELS else None
