"""A server that speaks HTTP with Server-Sent Events as the protocol's first version had it.

One stream brings everything the server says. Its first event names the address to which messages
are sent, and that must be at the same origin: another place has not earned what we send.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from folkmoot.core import errors as e
from folkmoot.core.message import (
    Notification,
    ProtocolMessage,
    Request,
    Response,
    encode_message,
)
from folkmoot.core.transport import TransportContext
from folkmoot.mcp.client.exchange import ServerStream
from folkmoot.mcp.client.link import OpenRequests
from folkmoot.mcp.client.target import refusal_of
from folkmoot.mcp.client.weblink import LISTENS, OK, SAYS, WebLink, as_carry_error
from folkmoot.mcp.wire import EVENT_STREAM, INITIALIZE, answered_id, cancelled_id

if TYPE_CHECKING:
    from folkmoot.core.envelope import MessageEnvelope
    from folkmoot.core.ports import Clock
    from folkmoot.mcp.client.connection import HttpAnswer
    from folkmoot.mcp.client.target import HttpTarget
    from folkmoot.mcp.client.url import HttpUrl
    from folkmoot.mcp.framing import SseEvent

ENDPOINT: Final = "endpoint"
ENDPOINT_SECONDS: Final = 10.0
"""How long a server may take to name the address for messages."""
LONGEST_ENDPOINT: Final = 8192


class OldSseLink(WebLink):
    """One conversation with a server of the old HTTP+SSE transport, as any `WebLink`."""

    def __init__(self, target: HttpTarget, clock: Clock, **options: Any) -> None:
        super().__init__(target, clock, **options)
        self._endpoint: asyncio.Future[HttpUrl]
        self._open_requests = OpenRequests()
        self._lost: e.CarryError | None = None

    async def open(self) -> None:
        """Open the stream and learn where messages go."""
        self._endpoint = asyncio.get_running_loop().create_future()
        self.start(self._listen())
        try:
            async with asyncio.timeout(ENDPOINT_SECONDS):
                await self._endpoint
        except TimeoutError:
            raise e.ServerTimeout(
                f"The server at {self.target.shown} does not say where messages go."
            ) from None

    async def _listen(self) -> None:
        stream = _OldStream(self)
        try:
            headers = dict(self._own) | LISTENS
            async with self.target.ask("GET", headers) as answer:
                if answer.status not in OK:
                    raise as_carry_error(refusal_of(answer.status))
                if answer.content_type != EVENT_STREAM:
                    raise e.ServerAnswerInvalid(
                        f"The server at {self.target.shown} answers with "
                        f"{answer.content_type[:100]}, not with a stream of events."
                    )
                await stream.read(answer)
            self._lost = e.ServerUnreachable(f"The server at {self.target.shown} ended the stream.")
        except e.CarryError as error:
            self._lost = error
        await self._leave_nothing_open(self._lost)

    async def _leave_nothing_open(self, error: e.CarryError) -> None:
        if not self._endpoint.done():
            self._endpoint.set_exception(error)
            return
        while (lost := self._open_requests.lost()) is not None:
            await self._inbox.put(self.envelope_of(self.answer_for(error, lost)), 0)
        self._inbox.end()

    def name_endpoint(self, named: bytes) -> None:
        """The server says where messages go."""
        if self._endpoint.done():
            return
        here = self.target.url
        try:
            place = here.join(named[:LONGEST_ENDPOINT].decode().strip())
            safe = len(named) <= LONGEST_ENDPOINT and place.origin == here.origin
        except ValueError:
            place, safe = here, False
        if not safe:
            raise e.ServerAnswerInvalid(
                f"The server at {self.target.shown} names an address elsewhere for messages, "
                "which is not used."
            )
        self._endpoint.set_result(place)

    async def send_envelope(self, envelope: MessageEnvelope[ProtocolMessage]) -> None:
        """Send a message; a request is on its way then, everything else is accepted."""
        self.check_open(envelope)
        if self._lost is not None or not self._endpoint.done():
            raise e.TransportClosed("The stream from the server has ended.")
        message, headers = envelope.message, self.sender_of(envelope) | SAYS
        if type(message) is Request:
            self._open_requests.add(message)
            asking = self._ask(message, headers)
            if message.method == INITIALIZE:
                await asking
            else:
                # Some servers accept a request only once they have answered it.
                self.start(asking)
            return
        if type(message) is Notification:
            self._open_requests.answered(cancelled_id(message))
        await self.tell(headers, encode_message(message), self._endpoint.result())

    async def _ask(self, request: Request, headers: dict[str, str]) -> None:
        try:
            await self.tell(headers, encode_message(request), self._endpoint.result())
        except e.CarryError as error:
            if request.id in self._open_requests:
                self._open_requests.answered(request.id)
                await self._inbox.put(self.envelope_of(self.answer_for(error, request.id)), 0)

    async def deliver(
        self, message: ProtocolMessage, transport: TransportContext, size: int
    ) -> None:
        """Take a message of the stream."""
        if type(message) is Response:
            self._open_requests.answered(message.id)
        await self._inbox.put(self.envelope_of(message, transport), size)

    async def unreadable(self, raw: bytes, error: e.MessageError) -> None:
        """Take note of what is not a message; if it was meant for someone, they are told."""
        self.invalid_messages.note(error)
        message_id = answered_id(raw)
        if message_id is not None and message_id in self._open_requests:
            self._open_requests.answered(message_id)
            words = f"The server's answer cannot be read: {error.message}"
            answer = self.answer_for(e.ServerAnswerInvalid(words), message_id)
            await self._inbox.put(self.envelope_of(answer), 0)


class _OldStream(ServerStream):
    """The stream, with the event that only this transport has."""

    def __init__(self, link: OldSseLink) -> None:
        super().__init__("sse", link.limits, link.deliver, link.unreadable)
        self._link = link

    async def take(self, event: SseEvent, answer: HttpAnswer) -> None:
        if event.event_type == ENDPOINT:
            self._link.name_endpoint(event.data)
        else:
            await super().take(event, answer)
