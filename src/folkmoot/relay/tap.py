"""The interceptors and the tape of `/mcp`: its messages pass the same steps as a proxy's.

Who asks is made out before, so that rules can name them; whatever an interceptor makes of a message
is judged by policy afterwards. A hub that neither records nor intercepts has none of this.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

from folkmoot.core.errors import MessageError
from folkmoot.core.message import Request, decode_message, encode_message
from folkmoot.core.transport import Headers
from folkmoot.core.verdict import Block, Mock
from folkmoot.mcp import wire
from folkmoot.mcp.client.headers import ANSWER_HEADERS, REQUEST_HEADERS, allowed
from folkmoot.mcp.wire import readable_id
from folkmoot.relay.contexts import Contexts, mirrored
from folkmoot.relay.replies import JSON, Replies, say_json, settle
from folkmoot.relay.steps import TO_SERVER, answer_of
from folkmoot.telemetry.records import AUDIT_TRAIL, WITHHELD, AuditTrail
from folkmoot.transports.bodies import replaying
from folkmoot.transports.mcp.arrivals import REWRITTEN_KEY
from folkmoot.transports.mcp.sealed_ids import shown_header

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.types import Message, Receive, Scope, Send

    from folkmoot.core.message import ProtocolMessage
    from folkmoot.core.policy import Principal
    from folkmoot.core.strict import Limits
    from folkmoot.relay.conversation import Talk, Talks
    from folkmoot.relay.steps import Envelope, Steps
    from folkmoot.transports.mcp.arrivals import Exchange

LENGTH: Final = b"content-length"
OUR_HEADERS: Final = (
    (b"content-type", b"application/json"),
    (b"accept", wire.ACCEPT_BOTH.encode()),
)
SAID_ANEW: Final = frozenset(
    {
        b"accept",
        b"content-type",
        wire.EVENT_ID_HEADER.encode(),
        wire.METHOD_HEADER.encode(),
        wire.NAME_HEADER.encode(),
    }
)
"""What a request says of its own message, which is another one now."""


MOCKED: Final = "mocked"
"""The outcome of a call that a rule answered in the server's place."""


class Endpoint(Protocol):
    """What stands behind the tap."""

    def principal(self, exchange: Exchange) -> Principal:
        """Who asks, as policy knows them."""

    def stopped(self, exchange: Exchange, request: Request, outcome: str) -> None:
        """Told of a call that was stopped, or whose answer was kept back, and in a word how."""

    async def __call__(
        self, scope: Scope, receive: Receive, send: Send, *, tapped: bool = False
    ) -> None:
        """Answer a request; one that is `tapped` has not to pass the tap."""


class Tap:
    """Has everything said at an endpoint pass the steps.

    `meant` answers the message that one stands for: a call inside another is taken out of it first,
    so that no rule is passed by in there, and no tape keeps what it should not.
    """

    def __init__(
        self,
        steps: Steps,
        talks: Talks,
        limits: Limits,
        meant: Callable[[ProtocolMessage], ProtocolMessage] = lambda message: message,
    ) -> None:
        self._steps = steps
        self._talks = talks
        self._limits = limits
        self._meant = meant
        self._contexts = Contexts()

    async def __call__(
        self,
        exchange: Exchange,
        body: bytes | None,
        send: Send,
        serve: Callable[[Scope, bytes | None, Send], Awaitable[None]],
        endpoint: Endpoint,
    ) -> None:
        """Take one request through, and what `serve` answers to it."""
        scope, caller = exchange.scope, endpoint.principal(exchange)
        headers = allowed(_shown(scope["headers"]), REQUEST_HEADERS)
        talk = self._talks.of(headers)
        request: Request | None = None
        asked = self._contexts.of_request(scope, headers)
        if body is not None:
            try:
                message = decode_message(body, self._limits)
            except MessageError as error:
                await say_json(send, answer_of(Block(error), readable_id(body)), error.http)
                return
            meant = self._meant(message)
            request = meant if isinstance(meant, Request) else None
            passed = await self._steps.carry(
                talk.envelope(meant, TO_SERVER, asked, caller), talk.conversation
            )
            self._steps.commit()
            if passed.onward is None:
                if passed.stopped is not None and request is not None:
                    endpoint.stopped(exchange, request, outcome_of(passed.stopped))
                await settle(send, passed.back)
                return
            if passed.onward.message is not message:
                body = encode_message(passed.onward.message)
                scope = _changed(scope, passed.onward.message, len(body))
        trail = AuditTrail()

        async def answered(passed: bool) -> None:  # noqa: FBT001 - the one thing to tell
            if passed:
                trail.deliver()
            elif not trail.withhold() and request is not None:
                endpoint.stopped(exchange, request, WITHHELD)

        tell = partial(tell_endpoint, endpoint, scope)
        replies = Replies(talk, self._steps, self._limits, asked, self._contexts, tell, answered)
        replies.connection, replies.caller = asked.connection, caller
        tapped = _Tapped(self._talks, talk, replies, scope["method"], send)
        try:
            await serve({**scope, AUDIT_TRAIL: trail}, body, tapped)
        finally:
            trail.end()


async def tell_endpoint(endpoint: Endpoint, scope: Scope, answer: Envelope) -> None:
    """Answer a request of the hub's in the client's place."""
    body = encode_message(answer.message)
    said = [pair for pair in scope["headers"] if pair[0] not in SAID_ANEW]
    told = {**scope, "method": "POST", "headers": [*said, *OUR_HEADERS]}
    asked = _with_length(told, len(body))
    await endpoint(asked, replaying(body, _gone), _say_nothing, tapped=True)


class _Tapped:
    """The way back of one answer."""

    def __init__(self, talks: Talks, talk: Talk, replies: Replies, method: str, send: Send) -> None:
        self._talks = talks
        self._talk = talk
        self._replies = replies
        self._method = method
        self._send = send
        self._head: Message = {}
        self._headers = Headers()
        self._kind = ""
        self._body = bytearray()

    async def __call__(self, message: Message) -> None:
        """Pass a part of the answer on, or keep it until the message in it is whole."""
        if message["type"] == "http.response.start":
            await self._begin(message)
        elif self._kind == JSON:
            self._body += message.get("body", b"")
            if not message.get("more_body", False):
                await self._end()
        elif self._kind == wire.EVENT_STREAM and message.get("body"):
            await self._send({**message, "body": await self._replies.events(message["body"])})
        else:
            await self._send(message)

    async def _begin(self, message: Message) -> None:
        pairs = tuple(_shown(message.get("headers", ())))
        self._headers = allowed(pairs, ANSWER_HEADERS)
        self._talks.heard(self._talk, self._method, message["status"], dict(pairs))
        kind = self._headers.get("content-type") or ""
        self._kind = kind.partition(";")[0].strip().lower()
        self._head = message
        if self._kind == wire.EVENT_STREAM:
            # What is said in a stream may be another thing, and of another length.
            await self._send({**message, "headers": _without_length(message)})
        elif self._kind != JSON:
            await self._send(message)

    async def _end(self) -> None:
        status = self._head["status"]
        body = await self._replies.message(bytes(self._body), status, self._headers)
        told = [*_without_length(self._head), (LENGTH, b"%d" % len(body))]
        await self._send({**self._head, "headers": told})
        await self._send({"type": "http.response.body", "body": body})


def outcome_of(verdict: Block | Mock) -> str:
    """What became of a call that an interceptor stopped, in a word."""
    return MOCKED if isinstance(verdict, Mock) else verdict.error.code


def _decoded(pairs: list[tuple[bytes, bytes]]) -> list[tuple[str, str]]:
    return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in pairs]


def _shown(pairs: list[tuple[bytes, bytes]]) -> list[tuple[str, str]]:
    """Headers as everyone but the endpoint sees them."""
    return [shown_header(name, value) for name, value in _decoded(pairs)]


def _changed(scope: Scope, message: ProtocolMessage, length: int) -> Scope:
    """The request with another message in it."""
    said = mirrored(Headers(tuple(_decoded(scope["headers"]))), message)
    told = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in said]
    return _with_length({**scope, "headers": told, REWRITTEN_KEY: True}, length)


def _with_length(scope: Scope, length: int) -> Scope:
    return {**scope, "headers": [*_without_length(scope), (LENGTH, b"%d" % length)]}


def _without_length(head: Scope | Message) -> list[tuple[bytes, bytes]]:
    return [(name, value) for name, value in head.get("headers", ()) if name != LENGTH]


async def _gone() -> Message:
    return {"type": "http.disconnect"}


async def _say_nothing(_: Message) -> None:
    pass
