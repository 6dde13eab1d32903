"""Forwards HTTP exchanges to a server that speaks Streamable HTTP, message by message.

Each request of a client is one request to the server: status, session, streams and event ids stay
what they are. The cost of an exchange is that of its own bytes.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Final
from weakref import WeakSet

from folkmoot.core.errors import HubStopping, MessageError, MethodNotAllowed, RequestError
from folkmoot.core.message import decode_message
from folkmoot.core.verdict import Block
from folkmoot.mcp.wire import readable_id
from folkmoot.relay.contexts import Contexts
from folkmoot.relay.exchange import Exchange, Server
from folkmoot.relay.replies import say_json
from folkmoot.relay.steps import Steps, answer_of
from folkmoot.transports.bodies import read_body, replaying

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from starlette.types import ASGIApp, Receive, Scope, Send

    from folkmoot.core.message import ProtocolMessage
    from folkmoot.core.strict import Limits
    from folkmoot.mcp.client.target import HttpTarget
    from folkmoot.relay.conversation import Talks
    from folkmoot.relay.era_switch import EraSwitch

AT_ONCE_SECONDS: Final = 0.05
"""How long an exchange may take before it matters whether the client is still there."""
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
        self._watches: WeakSet[_Watch] = WeakSet()
        """Those of exchanges that take their time."""
        self._stopping = False

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
        for watch in list(self._watches):
            watch.stop()

    async def _unless_gone(self, receive: Receive, exchange: Exchange) -> bool:
        """Do an exchange for as long as the client waits; whether it is to be done elsewhere."""
        failure: Exception | None = None
        away = stopped = False
        try:
            async with asyncio.TaskGroup() as tasks:
                watch = _Watch(tasks, receive, self._watched)
                try:
                    away = await exchange.run()
                except Exception as error:  # noqa: BLE001 - raised again, out of the group
                    failure = error
                finally:
                    watch.end()
        except* _Gone:
            failure = None
        except* _Stopping:
            stopped = True
        if stopped:
            await exchange.fail(HubStopping("The proxy is stopping."))
        elif failure is not None:
            raise failure
        return away

    def _watched(self, watch: _Watch) -> None:
        """An exchange takes its time."""
        self._watches.add(watch)
        if self._stopping:
            watch.stop()


class _Watch:
    """Looks whether the client is still there, but not at an exchange that is over at once."""

    def __init__(
        self, tasks: asyncio.TaskGroup, receive: Receive, begun: Callable[[_Watch], None]
    ) -> None:
        self._tasks = tasks
        self._receive = receive
        self._begun = begun
        self._over = False
        self._task: asyncio.Task[None] | None = None
        self._timer = asyncio.get_running_loop().call_later(AT_ONCE_SECONDS, self._begin)

    def _begin(self) -> None:
        self._task = self._tasks.create_task(self._until_gone())
        self._begun(self)

    async def _until_gone(self) -> None:
        # Whoever sends a body that is too long or too slow is as good as gone.
        with suppress(RequestError):
            while (await self._receive())["type"] != "http.disconnect":
                pass
        raise _Gone

    def stop(self) -> None:
        """Have the exchange end now, if it has not ended by itself."""
        if not self._over:
            self._tasks.create_task(_stop())

    def end(self) -> None:
        """Look no more."""
        self._over = True
        self._timer.cancel()
        if self._task is not None:
            self._task.cancel()


async def _stop() -> None:
    raise _Stopping


class _Gone(Exception):
    """The client has left: nobody waits for the answer."""


class _Stopping(Exception):
    """The proxy ends: there will be no answer."""
