"""Forwards HTTP exchanges to a server that speaks Streamable HTTP, message by message.

Each request of a client is one request to the server: status, session, streams and event ids stay
what they are. The cost of an exchange is that of its own bytes.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Final

from folkmoot.core.errors import HubStopping, MessageError, MethodNotAllowed
from folkmoot.core.message import decode_message
from folkmoot.core.verdict import Block
from folkmoot.mcp.server.watching import WATCH_SECONDS, Watching
from folkmoot.mcp.wire import readable_id
from folkmoot.relay.contexts import Contexts
from folkmoot.relay.exchange import Exchange, Server
from folkmoot.relay.replies import say_json
from folkmoot.relay.steps import Steps, answer_of
from folkmoot.taskgroups import Interruptible, group
from folkmoot.transports.bodies import read_body, replaying

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.types import ASGIApp, Receive, Scope, Send

    from folkmoot.core.message import ProtocolMessage
    from folkmoot.core.strict import Limits
    from folkmoot.mcp.client.target import HttpTarget
    from folkmoot.relay.conversation import Talks
    from folkmoot.relay.era_switch import EraSwitch

METHODS: Final = frozenset({"POST", "GET", "DELETE"})


class Forwarder:
    """The ASGI application at `/mcp` in front of one Streamable HTTP server.

    Clients of an era that the server does not speak are led to `front`.
    """

    def __init__(
        self,
        target: HttpTarget,
        steps: Steps,
        talks: Talks,
        *,
        limits: Limits,
        headers: Sequence[str] = (),
        eras: EraSwitch | None = None,
        front: ASGIApp | None = None,
    ) -> None:
        self._server = Server(target, steps, talks, limits, eras, Contexts())
        self._limits = limits
        self._headers = tuple(headers)
        self._eras = eras
        self._front = front
        self._tasks = asyncio.TaskGroup()
        self._watching = Watching(self._tasks)
        self._exchanges: set[Interruptible] = set()
        self._stopping = False

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Own whoever watches clients, while entered."""
        async with group(self._tasks):
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forward one request, and its answer as it comes."""
        if scope["method"] not in METHODS:
            raise MethodNotAllowed("The address takes GET, POST and DELETE.")
        message: ProtocolMessage | None = None
        body = None
        if scope["method"] == "POST":
            body = await read_body(receive)
            if body is None:
                return
            try:
                message = decode_message(body, self._limits)
            except MessageError as error:
                await say_json(send, answer_of(Block(error), readable_id(body)), error.http)
                return
        headers = self._server.contexts.headers_of(scope, self._headers)
        away = self._eras is not None and await self._eras.leads_away(message, headers)
        if not away:
            exchange = Exchange(self._server, scope, headers, message, send)
            away = await self._unless_gone(receive, exchange)
        if away and self._front is not None:
            known = receive if body is None else replaying(body, receive)
            await self._front(scope, known, send)

    def stop(self) -> None:
        """End every exchange that takes its time, so that the server can stop."""
        self._stopping = True
        asyncio.get_running_loop().call_later(WATCH_SECONDS, self._stop_all)

    def _stop_all(self) -> None:
        for exchange in tuple(self._exchanges):
            exchange.stop(HubStopping("The proxy is stopping."))

    async def _unless_gone(self, receive: Receive, exchange: Exchange) -> bool:
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
        except HubStopping as error:
            await exchange.fail(error)
            return False
        finally:
            self._watching.end(watched)
            self._exchanges.discard(doing)


class _Gone(Exception):
    """The client has left: nobody waits for the answer."""
