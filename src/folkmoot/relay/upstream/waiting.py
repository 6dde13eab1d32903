"""Who waits for what a server says: `Waiting` for one answer, `Listen` for changes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from folkmoot.core.errors import FolkmootError
from folkmoot.core.message import ErrorObject, Notification, Response
from folkmoot.mcp.wire import ACKNOWLEDGED, members_of, params_of

if TYPE_CHECKING:
    from folkmoot.gateway.ports import Wanted
    from folkmoot.mcp.peer import Call

logger = logging.getLogger("folkmoot.backend")

Heard: TypeAlias = Callable[[Notification], None]


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


class Waiting:
    """Someone who wants something of the server, and waits for the answer."""

    __slots__ = ("answer", "began", "call", "failure", "id", "seconds", "sending", "wanted")

    def __init__(self, message_id: int, wanted: Wanted, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        self.id = message_id
        self.wanted = wanted
        self.seconds = seconds
        self.began = loop.time()
        self.answer: asyncio.Future[Response] = loop.create_future()
        self.call: Call | None = None
        """What the server was asked for it; None if it was not asked anything yet."""
        self.failure: FolkmootError | None = None
        """Why the answer that is on its way is none of the server's."""
        self.sending: asyncio.Task[Any] | None = None
        """Who waits for the link to take the request, and is to be woken should that take long."""

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
        """Let whoever waits know that there is no answer."""
        if not self.answer.done():
            self.answer.set_exception(error)

    def close(self) -> None:
        """Nobody waits any more; they may have been told something else already."""
        if self.answer.done() and not self.answer.cancelled():
            self.answer.exception()

    def hear(self, notice: Notification) -> None:
        """Tell whoever waits what the server says meanwhile."""
        if self.wanted.tell is not None:
            passed_on(self.wanted.tell, notice)


class Listen:
    """Someone who wants to hear of changes. The server says first what of it it will do."""

    def __init__(self, message_id: int, heard: Heard, close: Callable[[Listen], None]) -> None:
        self.id = message_id
        self._close = close
        self._heard = heard
        self.agreed: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self.ended = asyncio.Event()
        """Set once the server will say nothing more."""

    def close(self) -> None:
        """Hear nothing more, and have the server know."""
        self._close(self)

    def hear(self, notice: Notification) -> None:
        """The server agrees to it, or tells of a change."""
        if notice.method != ACKNOWLEDGED:
            passed_on(self._heard, notice)
        elif not self.agreed.done():
            self.agreed.set_result(members_of(params_of(notice).get("notifications")))

    def refused(self, answer: Response) -> None:
        """The server ends it."""
        said = answer.error.message if isinstance(answer.error, ErrorObject) else "It ended."
        error = FolkmootError(f"The server does not announce changes: {said}")
        self.end(Unanswered(error, begun=False, gone=False))

    def end(self, error: Exception) -> None:
        """There is nothing more to hear."""
        if not self.agreed.done():
            self.agreed.set_exception(error)
            # Whoever waited for it may have left.
            self.agreed.exception()
        self.ended.set()


def passed_on(tell: Heard, notice: Notification) -> None:
    """Tell someone; what one of them gets wrong must not end a link that others share."""
    try:
        tell(notice)
    except Exception:
        logger.exception("what a server said could not be passed on")
