"""MessageEnvelope: a message and the context it travels in.

The direction is set where a message enters and never guessed from its method. Contexts are frozen
and shared: the session and transport of a connection are one object each for all its messages, so
putting a message into its envelope costs the same whatever they hold.
"""

from __future__ import annotations

from enum import Enum
from typing import Any, Final, Generic, TypeVar

import msgspec
from msgspec.structs import replace

from folkmoot.core import errors as e
from folkmoot.core.message import Request, Response, same_id
from folkmoot.core.policy import Principal
from folkmoot.core.session import ANONYMOUS, Era, SessionContext
from folkmoot.core.timing import TimingContext
from folkmoot.core.transport import UNKNOWN, TransportContext

M = TypeVar("M")
N = TypeVar("N")


class MessageDirection(Enum):
    """Which way a message flows."""

    CLIENT_TO_SERVER = "client_to_server"
    SERVER_TO_CLIENT = "server_to_client"
    INTERNAL = "internal"
    UNKNOWN = "unknown"

    # Members are themselves and nothing else; the hash of their name costs a call each time.
    __hash__ = object.__hash__

    def should_forward_to_server(self) -> bool:
        """Whether the message is on its way to the server."""
        return self is MessageDirection.CLIENT_TO_SERVER

    def should_send_to_client(self) -> bool:
        """Whether the message is on its way to the client."""
        return self is MessageDirection.SERVER_TO_CLIENT

    def reverse(self) -> MessageDirection:
        """The way an answer goes; internal and unknown have no other side."""
        return _REVERSED.get(self, self)

    @classmethod
    def _missing_(cls, _value: object) -> MessageDirection:
        return cls.UNKNOWN


_REVERSED: Final = {
    MessageDirection.CLIENT_TO_SERVER: MessageDirection.SERVER_TO_CLIENT,
    MessageDirection.SERVER_TO_CLIENT: MessageDirection.CLIENT_TO_SERVER,
}


class MessageContext(msgspec.Struct, frozen=True):
    """Everything about a message that is not the message."""

    timing: TimingContext
    direction: MessageDirection = MessageDirection.UNKNOWN
    session: SessionContext = ANONYMOUS
    transport: TransportContext = UNKNOWN
    extensions: dict[str, Any] = msgspec.field(default_factory=dict)
    """Shared like the rest, so never changed in place: see `MessageEnvelope.with_extension`."""
    caller: Principal | None = None
    """Who asks: the authenticated sender of a request, also beside the answers to it."""
    notes: dict[Any, Any] = msgspec.field(default_factory=dict)
    """What those on the way of a request remember until it is answered, each under a key of its
    own: one map for the request and its answer, and a new one for every request."""

    @classmethod
    def minimal(cls, timing: TimingContext | None = None) -> MessageContext:
        """Only the time is known: for messages from before the envelope."""
        return cls(timing or TimingContext.now())

    def is_complete(self) -> bool:
        """Whether the message can be routed: a direction, and a session where its era has them."""
        return self.direction is not MessageDirection.UNKNOWN and (
            self.session.session_id is not None or self.session.era is Era.STATELESS
        )


class MessageEnvelope(msgspec.Struct, Generic[M], frozen=True):
    """The complete message: what is said, and all that is needed to carry it."""

    message: M
    context: MessageContext

    @classmethod
    def new(cls, message: M, timing: TimingContext | None = None) -> MessageEnvelope[M]:
        """An envelope with minimal context."""
        return cls(message, MessageContext.minimal(timing))

    def with_message(self, message: N) -> MessageEnvelope[N]:
        """The same context around another message."""
        return MessageEnvelope(message, self.context)

    def with_direction(self, direction: MessageDirection) -> MessageEnvelope[M]:
        """The same message, flowing another way."""
        return MessageEnvelope(self.message, replace(self.context, direction=direction))

    def with_session(self, session: SessionContext) -> MessageEnvelope[M]:
        """The same message, in a session."""
        return MessageEnvelope(self.message, replace(self.context, session=session))

    def with_transport(self, transport: TransportContext) -> MessageEnvelope[M]:
        """The same message, on a transport."""
        return MessageEnvelope(self.message, replace(self.context, transport=transport))

    def with_timing(self, timing: TimingContext) -> MessageEnvelope[M]:
        """The same message, at another stage of its way."""
        return MessageEnvelope(self.message, replace(self.context, timing=timing))

    def with_extension(self, name: str, value: Any) -> MessageEnvelope[M]:
        """A copy of the message with one more extension; the original is unchanged."""
        extensions = {**self.context.extensions, name: value}
        return MessageEnvelope(self.message, replace(self.context, extensions=extensions))

    def answered_by(
        self,
        response: Response,
        timing: TimingContext,
        transport: TransportContext | None = None,
    ) -> MessageEnvelope[Response]:
        """The envelope of the answer to this request: the same session, the direction reversed.

        An answer that came another way, such as an event of a stream, brings its own transport.
        """
        request = self.message
        if not isinstance(request, Request) or not same_id(request.id, response.id):
            raise e.InvalidResponse("The response does not carry the id of this request.")
        c = self.context
        direction, carried = c.direction.reverse(), transport or c.transport
        context = MessageContext(
            timing, direction, c.session, carried, c.extensions, c.caller, c.notes
        )
        return MessageEnvelope(response, context)
