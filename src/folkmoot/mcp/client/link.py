"""What every way to a server is: a carrier that knows which of its requests are unanswered."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, Final, Self

from msgspec import field

from folkmoot.core import errors as e
from folkmoot.core.entity import Entity
from folkmoot.core.envelope import MessageDirection
from folkmoot.core.message import MessageId, Request, Response
from folkmoot.mcp.carrier import PROXY_LIMITS, Carrier
from folkmoot.mcp.wire import refusal

if TYPE_CHECKING:
    from folkmoot.core.ports import Clock
    from folkmoot.core.strict import Limits
    from folkmoot.core.transport import TransportContext

logger = logging.getLogger("folkmoot.proxy")

MOST_OPEN: Final = 4096
"""Requests that one server may leave unanswered at a time; one more is refused."""


JUNK_A_SECOND: Final = 2 * 1024 * 1024
"""Bytes that are no message, which take long to tell from one: more than these are read later."""


class ServerLink(Carrier):
    """A way to a server. `async with` opens it and closes it."""

    def __init__(self, clock: Clock, limits: Limits = PROXY_LIMITS) -> None:
        super().__init__(MessageDirection.SERVER_TO_CLIENT, clock, limits)
        self.invalid_messages = InvalidMessages()
        self.failing: Callable[[MessageId, e.FolkmootError], None] | None = None
        """Told why a request gets an answer of this link's own making, before that is received."""
        self.answering: Callable[[Response, TransportContext], bool] | None = None
        """Offered an answer that needs not wait to be received, and says whether it takes it."""

    async def open(self) -> None:
        """Reach the server; `ServerUnreachable` says why that cannot be done."""

    own_streams: ClassVar[bool] = False
    """Whether each request has a stream of its own, as over Streamable HTTP."""

    def answer_for(self, error: e.FolkmootError, message_id: MessageId) -> Response:
        """The answer to a request whose server gives none."""
        if self.failing is not None:
            self.failing(message_id, error)
        return refusal(message_id, error)

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class OpenRequests(Entity):
    """The requests a server has not answered, oldest first. Ids are told apart with their type."""

    _ids: dict[MessageId, None] = {}

    def __contains__(self, message_id: MessageId | None) -> bool:
        return message_id in self._ids

    @property
    def only(self) -> MessageId | None:
        """The id of the only open request; None with none or several."""
        return next(iter(self._ids)) if len(self._ids) == 1 else None

    def add(self, request: Request) -> None:
        """Expect an answer."""
        if len(self._ids) >= MOST_OPEN:
            raise e.TooManyInFlight("The server already has too many open requests.")
        self._ids[request.id] = None

    def answered(self, message_id: MessageId | None) -> None:
        """Remove a request that was answered or is no longer waited for."""
        if message_id is not None:
            self._ids.pop(message_id, None)

    def lost(self) -> MessageId | None:
        """The oldest of them, now that the server will answer none."""
        for message_id in self._ids:
            del self._ids[message_id]
            return message_id
        return None


class InvalidMessages(Entity):
    """What a server wrote that is not a message: counted, and told once of each kind."""

    _seen: Counter[str] = field(default_factory=Counter)

    @property
    def count(self) -> int:
        """The number of stray messages."""
        return self._seen.total()

    def note(self, error: e.FolkmootError) -> None:
        """Count a stray message; its content is not logged."""
        self._seen[error.code] += 1
        if self._seen[error.code] == 1:
            logger.warning(
                "the server wrote something that is not a message", extra={"error": error.code}
            )
