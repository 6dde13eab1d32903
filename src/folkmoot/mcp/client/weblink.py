"""What links over HTTP share: their tasks, their inbox and their own headers."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, Self

from folkmoot.core import errors as e
from folkmoot.core.session import ANONYMOUS, SessionContext
from folkmoot.core.transport import Headers, HttpMetadata, TransportContext
from folkmoot.mcp.carrier import PROXY_LIMITS, EnvelopeQueue
from folkmoot.mcp.client.headers import ANSWER_HEADERS, CLIENTS_OWN, allowed
from folkmoot.mcp.client.link import ServerLink
from folkmoot.mcp.client.target import refusal_of
from folkmoot.mcp.wire import ACCEPT_BOTH, EVENT_STREAM, JSON, SESSION_HEADER
from folkmoot.taskgroups import BackgroundTasks

if TYPE_CHECKING:
    from folkmoot.core.envelope import MessageEnvelope
    from folkmoot.core.message import ProtocolMessage
    from folkmoot.core.ports import Clock
    from folkmoot.core.strict import Limits
    from folkmoot.mcp.client.connection import HttpAnswer
    from folkmoot.mcp.client.target import HttpTarget
    from folkmoot.mcp.client.url import HttpUrl
    from folkmoot.mcp.peer import Tag

TELL_SECONDS: Final = 30.0
"""How long a server may take to accept what wants no answer; what comes after it waits."""
OK: Final = range(200, 300)
SAYS: Final = {"content-type": JSON, "accept": ACCEPT_BOTH}
"""The headers of a request that carries a message."""
LISTENS: Final = {"accept": EVENT_STREAM}
"""The headers of a request that only opens a stream."""


class WebLink(ServerLink):
    """A link over HTTP. Its tasks end with it.

    `headers` go with everything it says. What a client on HTTP said of itself, such as its
    authorization and what `extra` names, goes on too, unless `pass_on` is off.
    """

    def __init__(
        self,
        target: HttpTarget,
        clock: Clock,
        *,
        session: SessionContext = ANONYMOUS,
        headers: Headers = Headers(),  # noqa: B008 - frozen
        pass_on: bool = True,
        extra: Sequence[str] = (),
        limits: Limits = PROXY_LIMITS,
    ) -> None:
        super().__init__(clock, limits)
        self.session = session
        self.target = target
        self.closed = False
        self._inbox = EnvelopeQueue()
        self._own = headers
        self._pass_on = pass_on
        self._extra = tuple(extra)
        self._tasks = asyncio.TaskGroup()
        self._running = BackgroundTasks(self._tasks)
        self.start = self._running.run
        """Has something done meanwhile, for as long as the link is open."""
        self._context = TransportContext(HttpMetadata(Headers(), "POST", target.shown))

    async def __aenter__(self) -> Self:
        await self._tasks.__aenter__()
        try:
            await self.open()
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        try:
            await self.close()
        finally:
            # What went wrong inside goes on as it is, and not as part of a group.
            await self._tasks.__aexit__(None, None, None)

    async def close(self) -> None:
        """End every stream."""
        self.closed = True
        self._inbox.end()
        self._running.end()

    @property
    def waiting(self) -> bool:
        """Whether a message was received already."""
        return bool(self._inbox.held)

    async def receive_envelope(self) -> MessageEnvelope[ProtocolMessage]:
        return await self._inbox.get()

    async def receive_tagged(self) -> tuple[MessageEnvelope[Any], Tag]:
        """The next message, and the request on whose own stream it was read."""
        return await self._inbox.get_tagged()

    def current_context(self) -> TransportContext:
        """The server's address."""
        return self._context

    def check_open(self, envelope: MessageEnvelope[Any]) -> None:
        """Refuse what cannot be sent."""
        self.check_way(envelope)
        if self.closed:
            raise e.TransportClosed("The link to the server is closed.")

    def sender_of(self, envelope: MessageEnvelope[Any]) -> dict[str, str]:
        """The headers of whoever sends a message: the client's own, and those of this link.

        Several clients may share a link, so nothing of one of them is kept for the next.
        """
        metadata = envelope.context.transport.metadata
        if not self._pass_on or not isinstance(metadata, HttpMetadata):
            return dict(self._own)
        return dict(allowed(metadata.headers, CLIENTS_OWN, self._extra)) | dict(self._own)

    def answer_context(self, method: str, answer: HttpAnswer) -> TransportContext:
        """What an HTTP answer says of itself and of its connection."""
        headers = allowed(answer.headers, ANSWER_HEADERS)
        metadata = HttpMetadata(headers, method, self.target.shown, answer.status)
        return TransportContext(metadata, answer.came_over)

    async def tell(self, headers: dict[str, str], body: bytes, url: HttpUrl | None = None) -> None:
        """Send what wants no answer, and wait until the server has accepted it."""
        try:
            async with (
                asyncio.timeout(TELL_SECONDS),
                self.target.ask("POST", headers, body, url=url) as answer,
            ):
                if answer.status not in OK:
                    error = refusal_of(answer.status, in_session=SESSION_HEADER in headers)
                    raise as_carry_error(error)
        except TimeoutError:
            raise e.ServerTimeout(
                f"The server at {self.target.shown} did not accept a message in time."
            ) from None


def as_carry_error(error: Exception) -> e.CarryError:
    """An error of one answer as an error of the transport."""
    if isinstance(error, e.CarryError):
        return error
    return e.ServerAnswerInvalid(str(error), **getattr(error, "data", {}))
