"""Caller: a plain client of one server, in whichever era the server speaks.

It asks one thing after the other and offers nothing to be asked for. The commands with which people
try a server by hand are made of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import count
from typing import Any, Final, Literal, TypeAlias

from folkmoot import __version__
from folkmoot.core import errors as e
from folkmoot.core.message import (
    ErrorObject,
    Notification,
    Request,
    Response,
    same_id,
)
from folkmoot.core.session import Era
from folkmoot.mcp import wire
from folkmoot.mcp.carrier import Carrier, Connect
from folkmoot.mcp.eras.openings import Evidence, answer_to_discover, supported_versions
from folkmoot.mcp.wire import error_answer, members_of, request_meta

Wish: TypeAlias = Literal["auto", "handshake", "stateless"]
"""Which era is to be spoken; `auto` is the newest that the server knows."""

PROBE_SECONDS: Final = 10.0
"""How long a server may take to answer `server/discover` before it is taken for an older one."""
MOST_PAGES: Final = 1_000
INFO: Final = {"name": "folkmoot", "version": __version__}


class PlainClient:
    """One conversation with a server, opened by `calling`."""

    era = Era.HANDSHAKE
    version = ""

    def __init__(
        self, server: Carrier, seconds: float, on_notice: Callable[[Notification], None]
    ) -> None:
        self._server = server
        self._seconds = seconds
        self._on_notice = on_notice
        self._ids = count(1)
        self.info: dict[str, Any] = {}
        """What the server says it is."""
        self.capabilities: dict[str, Any] = {}
        self.instructions = ""

    async def open(self, wish: Wish) -> None:
        """Agree on a version; raises what keeps the two from it."""
        if wish != "handshake" and await self._discover(only=wish == "stateless"):
            return
        starting = self._server.start_seconds > 0
        params = {"protocolVersion": wire.HANDSHAKE_VERSION, "capabilities": {}, "clientInfo": INFO}
        try:
            found = await self.result(wire.INITIALIZE, params)
        except e.ServerRefused:
            # It was not there yet when it was asked which eras it speaks.
            if wish == "auto" and starting and await self._discover(only=True):
                return
            raise
        self.version = str(found.get("protocolVersion", ""))
        self._know(found, found.get("serverInfo"))
        await self._say(Notification(method=wire.INITIALIZED))

    async def result(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """The result of a request; `ServerRefused` is the server's own error."""
        response = await self.ask(method, params or {})
        if isinstance(response.error, ErrorObject):
            raise refused(response.error)
        return members_of(response.result)

    async def listed(self, method: str, member: str) -> list[dict[str, Any]]:
        """All that a list holds, page by page."""
        found: list[dict[str, Any]] = []
        params: dict[str, Any] = {}
        for _ in range(MOST_PAGES):
            page = await self.result(method, params)
            items = page.get(member)
            found += [each for each in items if type(each) is dict] if type(items) is list else []
            cursor = page.get("nextCursor")
            if type(cursor) is not str or cursor == params.get("cursor"):
                break
            params = {"cursor": cursor}
        return found

    async def ask(
        self, method: str, params: dict[str, Any], seconds: float | None = None
    ) -> Response:
        """Send a request and return its response, an error response too."""
        # A server that was just started may have to be downloaded first.
        limit = max(self._seconds, self._server.start_seconds) if seconds is None else seconds
        request = Request(id=next(self._ids), method=method, params=params)
        request = self._dressed(request)
        try:
            async with asyncio.timeout(limit):
                await self._server.send(request)
                return await self._answer_to(request)
        except TimeoutError:
            raise e.ServerTimeout(f"The server did not answer {method} in {limit:g} s.") from None
        except e.TransportClosed:
            raise e.ServerUnreachable(f"The server ended before it answered {method}.") from None

    async def _answer_to(self, request: Request) -> Response:
        while True:
            message = await self._server.receive()
            if isinstance(message, Response):
                if same_id(message.id, request.id):
                    return message
            elif isinstance(message, Request):
                await self._server.send(unoffered(message))
            else:
                self._on_notice(message)

    async def _say(self, message: Notification) -> None:
        try:
            await self._server.send(message)
        except e.TransportClosed:
            raise e.ServerUnreachable("The server ended before it was asked anything.") from None

    async def _discover(self, *, only: bool) -> bool:
        """Whether the server speaks the stateless era; it must, where that is the only one."""
        self.era, self.version = Era.STATELESS, wire.STATELESS_VERSION
        seconds = None if only else min(PROBE_SECONDS, self._seconds)
        try:
            answer = await self.ask(wire.DISCOVER, {}, seconds)
        except e.ServerTimeout:
            if only:
                raise
            answer = error_answer(None, wire.METHOD_NOT_FOUND, "The server does not answer.")
        if isinstance(answer.error, ErrorObject) and self.version in supported_versions(
            answer.error
        ):
            # It refuses what it then says it supports: the specification has clients ask again.
            answer = await self.ask(wire.DISCOVER, {}, seconds)
        if answer_to_discover(answer) is Evidence.STATELESS and type(answer.result) is dict:
            meta = members_of(answer.result.get("_meta"))
            self._know(answer.result, meta.get(wire.SERVER_KEY))
            return True
        if only and isinstance(answer.error, ErrorObject):
            raise refused(answer.error)
        if only:
            raise e.ServerRefused("The server does not speak the stateless era.")
        self.era, self.version = Era.HANDSHAKE, ""
        return False

    def _know(self, found: dict[str, Any], info: Any) -> None:
        self.info = members_of(info)
        self.capabilities = members_of(found.get("capabilities"))
        told = found.get("instructions")
        self.instructions = told if type(told) is str else ""

    def _dressed(self, request: Request) -> Request:
        """A request with the metadata of its era."""
        meta: dict[str, Any] = {}
        if request.method not in (wire.INITIALIZE, wire.DISCOVER):
            meta[wire.TOKEN_KEY] = request.id
        if self.era is Era.STATELESS:
            meta |= request_meta(INFO, {}, None if request.method == wire.DISCOVER else "info")
        params = {**members_of(request.params), **({"_meta": meta} if meta else {})}
        return Request(id=request.id, method=request.method, params=params)


@asynccontextmanager
async def calling(
    connect: Connect,
    *,
    era: Wish = "auto",
    seconds: float = 60.0,
    on_notice: Callable[[Notification], None] = lambda _: None,
) -> AsyncIterator[PlainClient]:
    """A client of one server, while entered; `seconds` bounds each answer."""
    async with connect() as server:
        caller = PlainClient(server, seconds, on_notice)
        await caller.open(era)
        yield caller


def refused(error: ErrorObject) -> e.CarryError:
    """A server's error as one of ours, and that of the way to it as it is."""
    data = error.data if type(error.data) is dict else {}
    kind = e.ERRORS.get(str(data.get("code")))
    if error.code == e.CarryError.jsonrpc and kind is not None and issubclass(kind, e.CarryError):
        return kind(error.message)
    return e.ServerRefused(f"The server says: {error.message} ({error.code})", told=data)


def unoffered(request: Request) -> Response:
    """The answer to what a server asks of a client that offers nothing."""
    if request.method == wire.PING:
        return Response(id=request.id, result={})
    return error_answer(request.id, wire.METHOD_NOT_FOUND, "This client answers no questions.")
