"""The server behind the proxies, over HTTP; and the floor beside them, a proxy that only forwards.

`python -m benchmarks.proxy_servers server ERA TOOLS` and `… floor URL` serve and print their port.
"""

from __future__ import annotations

import socket
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import aiohttp
import uvicorn
import uvloop

from benchmarks.mail_servers import Running, started
from benchmarks.proxy_peer import STATELESS, answer, answers

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

JSON = (b"content-type", b"application/json")
EVENTS = (b"content-type", b"text/event-stream")
SESSION = b"mcp-session-id"
HOP_BY_HOP = frozenset(
    {"connection", "content-length", "date", "host", "server", "transfer-encoding"}
)


async def body_of(receive: Receive) -> bytes:
    """The whole body of a request."""
    body, more = b"", True
    while more:
        part = await receive()
        body, more = body + part.get("body", b""), part.get("more_body", False)
    return body


async def say(send: Send, status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
    """Answer with these bytes."""
    told = [*headers, (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": told})
    await send({"type": "http.response.body", "body": body})


class Server:
    """A server that answers at once; whoever listens hears nothing."""

    def __init__(self, era: str, tools: str) -> None:
        self._answers = answers(era, int(tools))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["method"] == "GET":
            await send({"type": "http.response.start", "status": 200, "headers": [EVENTS]})
            await send({"type": "http.response.body", "body": b": \n\n", "more_body": True})
            while (await receive())["type"] != "http.disconnect":
                pass
            return
        told = None
        if scope["method"] == "POST":
            body = await body_of(receive)
            told = answer(body, self._answers)
            if b'"initialize"' in body and told is not None:
                await say(send, 200, [JSON, (SESSION, uuid.uuid4().hex.encode())], told)
                return
        await say(send, 202 if told is None else 200, [JSON], told or b"")


class Floor:
    """Forwards a request with its headers and its body, and the answer likewise."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._session: aiohttp.ClientSession | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forward one request."""
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0), timeout=aiohttp.ClientTimeout(total=None)
            )
        body = await body_of(receive)
        pairs = [(name.decode(), value.decode()) for name, value in scope["headers"]]
        headers = [pair for pair in pairs if pair[0] not in HOP_BY_HOP]
        async with self._session.request(
            scope["method"], self._url, data=body or None, headers=headers
        ) as told:
            kept: list[Any] = [
                (name.lower().encode(), value.encode())
                for name, value in told.headers.items()
                if name.lower() not in HOP_BY_HOP
            ]
            await say(send, told.status, kept, await told.read())


async def serve(app: ASGIApp) -> None:
    """Serve with uvicorn as it comes, for as long as the process runs."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=2048)
    config = uvicorn.Config(app, log_level="error", access_log=False, lifespan="off")
    print(f"port {listener.getsockname()[1]}", flush=True)
    await uvicorn.Server(config).serve([listener])


@contextmanager
def http_server(core: int | None, era: str = STATELESS, tools: int = 1) -> Iterator[Running]:
    """The server that everything is measured in front of."""
    command = [sys.executable, "-m", "benchmarks.proxy_servers", "server", era, str(tools)]
    with started(command, {}, core) as running:
        yield running


@contextmanager
def http_floor(url: str, core: int | None) -> Iterator[Running]:
    """The bare HTTP proxy."""
    command = [sys.executable, "-m", "benchmarks.proxy_servers", "floor", url]
    with started(command, {}, core) as running:
        yield running


if __name__ == "__main__":
    apps: dict[str, Any] = {"server": Server, "floor": Floor}
    uvloop.run(serve(apps[sys.argv[1]](*sys.argv[2:])))
