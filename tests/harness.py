"""What tests of a serving hub share: a small HTTP client on plain sockets, and the HTTP side alone.

A test that needs the whole hub enters `Hub(settings).running()` of `folkmoot.app`.
"""

from __future__ import annotations

import asyncio
import gc
import json
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple, TypeVar

import uvloop
from starlette.routing import BaseRoute
from starlette.types import ASGIApp

from folkmoot.clock import SystemClock
from folkmoot.telemetry.metrics import Metrics
from folkmoot.transports.answers import Answers
from folkmoot.transports.bodies import BodyBounds, nobody, nowhere
from folkmoot.transports.guard import Hosts
from folkmoot.transports.http import build
from folkmoot.transports.listen import listen
from folkmoot.transports.server import HttpServer
from folkmoot.web.pages import Pages

T = TypeVar("T")

KEEP_ALIVE_SECONDS = 300
"""For servers of uvicorn: no shorter than a test, so that none closes what a client uses again."""


def run(main: Coroutine[Any, Any, T], seconds: float = 300) -> T:
    """Run a test's coroutine on the loop the hub runs on, for a bounded time."""

    async def bounded() -> T:
        async with asyncio.timeout(seconds):
            return await main

    return uvloop.run(bounded())


async def reached(holds: Callable[[], bool]) -> None:
    """Wait until something holds that nothing announces."""
    while not holds():  # noqa: ASYNC110 - nobody sets an event for it
        await asyncio.sleep(0.001)


MAX_STRETCH = 0.03
"""Seconds of processor time that one turn of the loop may take: ten times what it does."""


async def longest_stretch(stop: asyncio.Event) -> float:
    """The most processor time that passed between two turns of the loop."""
    # A collection takes long where many tests ran before.
    gc.disable()
    try:
        longest, before = 0.0, time.thread_time()
        while not stop.is_set():
            await asyncio.sleep(0)
            now = time.thread_time()
            longest, before = max(longest, now - before), now
        return longest
    finally:
        gc.enable()


class Answer(NamedTuple):
    """An HTTP answer."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)

    @property
    def text(self) -> str:
        """The body as text."""
        return self.body.decode()

    @property
    def refusal(self) -> tuple[int, str]:
        """The status and the code of an error."""
        return self.status, self.json()["error"]["code"]


async def read_answer(
    reader: asyncio.StreamReader, *, method: str = "GET", chunks: bool = False
) -> Answer:
    """Read one answer from a connection; of one in chunks only the head, unless told."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.rstrip().split("\r\n")
    headers = {k.strip().lower(): v.strip() for k, v in (line.split(":", 1) for line in lines)}
    body = b""
    if chunks and headers.get("transfer-encoding", "").lower() == "chunked":
        while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
            body += (await reader.readexactly(size + 2))[:size]
        await reader.readexactly(2)
    elif method != "HEAD":
        body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Answer(int(first.split()[1]), headers, body)


def head(path: str, method: str = "GET", **headers: str) -> bytes:
    """The first lines of a request, up to its body."""
    named = {"host": "localhost", **headers}
    lines = [f"{method} {path} HTTP/1.1", *(f"{k}: {v}" for k, v in named.items()), "", ""]
    return "\r\n".join(lines).encode("latin-1")


async def ask(
    port: int,
    path: str = "/",
    *,
    method: str = "GET",
    headers: Mapping[str, str] | None = None,
    body: bytes = b"",
    address: str = "127.0.0.1",
    source: str = "",
) -> Answer:
    """One request on a connection of its own, from the address `source`."""
    local = (source, 0) if source else None
    reader, writer = await asyncio.open_connection(address, port, local_addr=local)
    try:
        named = {"host": f"localhost:{port}", "connection": "close", **(headers or {})}
        if body:
            named.setdefault("content-length", str(len(body)))
        writer.write(head(path, method, **named) + body)
        return await read_answer(reader, method=method)
    finally:
        writer.close()


class Serving(NamedTuple):
    """The HTTP side of a hub, without the hub."""

    port: int
    server: HttpServer
    metrics: Metrics


@asynccontextmanager
async def serving(
    routes: Sequence[BaseRoute] = (),
    *,
    address: str = "127.0.0.1",
    max_body_bytes: int = 4096,
    pages: Pages | None = None,
    **options: Any,
) -> AsyncIterator[Serving]:
    """Serve these routes behind everything a hub puts in front of its own."""
    clock = SystemClock()
    metrics = Metrics(version="0", clock=clock)
    pages = pages or Pages(version="0", public_url="")
    before = {
        "hosts": Hosts(address),
        "bodies": BodyBounds(body_bytes=max_body_bytes),
        "identify": nobody,
        "traces": None,
        "lines": "all",
        "endpoints": None,
    }
    beneath = {
        "max_connections": 100,
        "shutdown_seconds": 5,
        "per_address": 0,
        "per_account": 0,
        "identify": nobody,
    }
    assert options.keys() <= before.keys() | beneath.keys()
    app = build(
        [*pages.routes(), *routes],
        answers=Answers(pages.error_page),
        locate=nowhere,
        metrics=metrics,
        clock=clock,
        **{name: options.get(name, value) for name, value in before.items()},
    )
    given = {name: options.get(name, value) for name, value in beneath.items()}
    async with served(app, address, metrics=metrics, **given) as hub:
        yield hub


@asynccontextmanager
async def served(
    app: ASGIApp, address: str = "127.0.0.1", metrics: Metrics | None = None, **options: Any
) -> AsyncIterator[Serving]:
    """Serve an application on a free port, and nothing in front of it."""
    sockets = listen(address, 0)
    metrics = metrics or Metrics(version="0", clock=SystemClock())
    limits = {"max_connections": 100, "shutdown_seconds": 1, **options}
    server = HttpServer(app, sockets, metrics=metrics, **limits)
    failure: BaseException | None = None
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(server.serve())
        await server.listening()
        try:
            yield Serving(sockets[0].getsockname()[1], server, metrics)
        except BaseException as error:  # noqa: BLE001 - raised again, out of the group
            failure = error
        server.stop()
    if failure is not None:
        raise failure
