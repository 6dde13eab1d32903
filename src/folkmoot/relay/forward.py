"""Forwards HTTP exchanges to a server that speaks Streamable HTTP, message by message.

Each request of a client is one request to the server: status, session, streams and event ids stay
what they are. The cost of an exchange is that of its own bytes.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Final

import msgspec

from folkmoot.core import errors as e
from folkmoot.core.entity import Entity
from folkmoot.core.message import Request, decode_message, encode_message
from folkmoot.core.strict import Limits
from folkmoot.core.transport import Headers
from folkmoot.core.verdict import Block
from folkmoot.mcp.client.target import HttpTarget
from folkmoot.mcp.server.responses import WATCH_SECONDS, DisconnectWatch
from folkmoot.mcp.wire import ACCEPT_BOTH, SESSION_HEADER, VERSION_HEADER, readable_id
from folkmoot.relay.conversation import HttpConversations
from folkmoot.relay.era_switch import EraSwitch
from folkmoot.relay.exchanges import Answering, Contexts, Replies, mirrored, say_json, settle
from folkmoot.relay.steps import TO_SERVER, Envelope, Steps, answer_of
from folkmoot.taskgroups import Interruptible, group
from folkmoot.transports.bodies import read_body, replaying

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from folkmoot.core.message import ProtocolMessage

logger = logging.getLogger("folkmoot.proxy")

METHODS: Final = frozenset({"POST", "GET", "DELETE"})


BACK: Final = ("authorization", SESSION_HEADER, VERSION_HEADER)
"""What a message of ours to the server takes over from the request whose stream it concerns."""
OUR_HEADERS: Final = (
    ("content-type", "application/json"),
    ("accept", ACCEPT_BOTH),
)


class ForwardTarget(msgspec.Struct, frozen=True):
    """The server, and what every exchange with it passes."""

    target: HttpTarget
    steps: Steps
    conversations: HttpConversations
    limits: Limits
    eras: EraSwitch | None
    contexts: Contexts


class ForwardedExchange(Entity):
    """One exchange, from the client's request to the end of the answer."""

    server: ForwardTarget
    scope: Scope
    headers: Headers
    message: ProtocolMessage | None
    send: Send

    def __post_init__(self) -> None:
        self._steps = self.server.steps
        query: bytes = self.scope["query_string"]
        target = self.server.target
        self._url = target.with_query(query.decode("latin-1")) if query else target.url
        self._method: str = self.scope["method"]
        self._conversation = self.server.conversations.of(self.headers)
        self._transport = self.server.contexts.of_request(self.scope, self.headers)
        self._replies = Replies(
            self._conversation,
            self._steps,
            self.server.limits,
            self._transport,
            self.server.contexts,
            # A method of ours would tie us and the replies into a knot that only the collector of
            # garbage undoes.
            partial(answer_server, self.server.target, self.headers),
        )
        self._answering = Answering(self._replies, self.server.limits.message_bytes, self.send)

    async def run(self) -> bool:
        """Forward the exchange; returns whether another path must do it instead."""
        try:
            if self.message is None:
                return await self._ask(None)
            conversation = self._conversation
            envelope = conversation.envelope(self.message, TO_SERVER, self._transport)
            passed = await self._steps.carry(envelope, conversation.conversation)
            self._steps.commit()
            if passed.onward is not None:
                if passed.onward.message is not self.message:
                    before, self.message = self.message, passed.onward.message
                    self.headers = mirrored(self.headers, self.message, before)
                return await self._ask(encode_message(self.message))
            await settle(self.send, passed.back)
        except (e.CarryError, e.MessageError, e.TapeUnwritable) as error:
            await self.fail(error)
        return False

    async def _ask(self, body: bytes | None) -> bool:
        server, eras = self.server, self.server.eras
        async with server.target.ask(self._method, self.headers, body, url=self._url) as answer:
            self._replies.connection = answer.came_over
            if eras is not None and eras.in_doubt(self.message):
                whole = await self._answering.kept(answer)
                if await eras.was_refused(self.headers, answer.status, whole):
                    return True
            server.conversations.heard(
                self._conversation, self._method, answer.status, answer.headers
            )
            await self._answering.relay(answer)
        return False

    async def fail(self, error: e.FolkmootError) -> None:
        """Tell the client that there is no answer, in whatever form is left."""
        message = self.message
        waiting = message.id if isinstance(message, Request) else None
        if waiting is not None:
            self._conversation.conversation.close(TO_SERVER, waiting)
        await self._answering.fail(answer_of(Block(error), waiting), error.http)


async def answer_server(target: HttpTarget, client: Headers, answer: Envelope) -> None:
    """Answer a request of the server's in the client's place."""
    headers = Headers((*(pair for pair in client if pair[0] in BACK), *OUR_HEADERS))
    try:
        async with target.ask("POST", headers, encode_message(answer.message)):
            pass
    except e.CarryError as error:
        # What the client itself waits for may still come.
        logger.warning("a message was not carried", extra={"error": error.message})


class Forwarder(Entity):
    """The ASGI application at `/mcp` in front of one Streamable HTTP server.

    Clients of an era that the server does not speak are led to `front`.
    """

    target: HttpTarget
    steps: Steps
    conversations: HttpConversations
    limits: Limits
    headers: tuple[str, ...] = ()
    eras: EraSwitch | None = None
    front: ASGIApp | None = None
    _tasks: asyncio.TaskGroup = msgspec.field(default_factory=asyncio.TaskGroup)
    _exchanges: set[Interruptible] = set()
    _stopping: bool = False

    def __post_init__(self) -> None:
        self._server = ForwardTarget(
            self.target, self.steps, self.conversations, self.limits, self.eras, Contexts()
        )
        self._watching = DisconnectWatch(self._tasks)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Own whoever watches clients, while entered."""
        async with group(self._tasks):
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forward one request, and stream its answer."""
        if scope["method"] not in METHODS:
            raise e.MethodNotAllowed("The address takes GET, POST and DELETE.")
        message: ProtocolMessage | None = None
        body = None
        if scope["method"] == "POST":
            body = await read_body(receive)
            if body is None:
                return
            try:
                message = decode_message(body, self.limits)
            except e.MessageError as error:
                await say_json(send, answer_of(Block(error), readable_id(body)), error.http)
                return
        headers = self._server.contexts.headers_of(scope, self.headers)
        away = self.eras is not None and await self.eras.leads_away(message, headers)
        if not away:
            exchange = ForwardedExchange(self._server, scope, headers, message, send)
            away = await self._unless_gone(receive, exchange)
        if away and self.front is not None:
            known = receive if body is None else replaying(body, receive)
            await self.front(scope, known, send)

    def stop(self) -> None:
        """End all open exchanges after a short wait, so that the server can stop."""
        self._stopping = True
        asyncio.get_running_loop().call_later(WATCH_SECONDS, self._stop_all)

    def _stop_all(self) -> None:
        for exchange in tuple(self._exchanges):
            exchange.stop(e.HubStopping("The proxy is stopping."))

    async def _unless_gone(self, receive: Receive, exchange: ForwardedExchange) -> bool:
        """Do an exchange for as long as the client waits; whether it is to be done elsewhere."""
        doing = Interruptible()
        self._exchanges.add(doing)
        if self._stopping:
            asyncio.get_running_loop().call_later(WATCH_SECONDS, self._stop_all)
        watched = self._watching.begin(receive, partial(doing.stop, _Gone()))
        try:
            with doing:
                return await exchange.run()
        except _Gone:
            return False
        except e.HubStopping as error:
            await exchange.fail(error)
            return False
        finally:
            self._watching.end(watched)
            self._exchanges.discard(doing)


class _Gone(Exception):
    """The client has left: nobody waits for the answer."""
