"""Clients that are slow, that vanish, and that are too many."""

from __future__ import annotations

import asyncio
import logging
import resource
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack, asynccontextmanager, suppress
from pathlib import Path

import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from folkmoot.transports import bodies, protocol
from tests.harness import ask, read_answer, serving
from tests.operator import ask_socket
from tests.process import Process
from tests.siege.host import open_files

# For SO_LINGER: closing tells the other side nothing but that it is over.
RESET = struct.pack("ii", 1, 0)

BODY_HEAD = b"POST /count HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000000\r\n\r\n"


async def count(request: Request) -> Response:
    return PlainTextResponse(str(len(await request.body())))


ROUTES = [Route("/count", count, methods=["POST"])]


async def drip(port: int, start: bytes, drop: bytes = b"x") -> bytes:
    """Send a little at a time for as long as the hub listens, and answer what it said."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(start)
    said = asyncio.ensure_future(reader.read())
    try:
        while not (said.done() or writer.is_closing()):
            writer.write(drop)
            await writer.drain()
            await asyncio.wait([said], timeout=0.01)
        return await said
    except OSError:
        return b""
    finally:
        said.cancel()
        writer.close()


@asynccontextmanager
async def honest(port: int) -> AsyncIterator[Callable[[], Awaitable[int]]]:
    """A client with a connection of its own: each call asks for a page and answers the status."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)

    async def look() -> int:
        writer.write(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n")
        return (await read_answer(reader)).status

    try:
        assert await look() == 200
        yield look
    finally:
        writer.close()


@pytest.mark.parametrize(
    ("start", "drop"),
    [
        (b"", b"\n"),
        (b"GET /", b"x"),
        (b"GET / HTTP/1.1\r\nhost: localhost\r\nx-slow: ", b"x"),
        (b"GET / HTTP/1.1\r\nhost: localhost\r\n", b"x: y\r\n"),
    ],
    ids=["nothing", "path", "value", "headers"],
)
async def test_a_head_that_comes_a_little_at_a_time_is_not_waited_for(monkeypatch, start, drop):
    async with serving(max_connections=100) as hub, honest(hub.port) as look:
        monkeypatch.setattr(protocol, "HEAD_SECONDS", 0.2)
        dripping = asyncio.gather(*(drip(hub.port, start, drop) for _ in range(50)))
        while not dripping.done():
            assert await look() == 200
        assert set(await dripping) == {b""}


async def test_a_body_that_comes_a_byte_at_a_time_is_not_waited_for(monkeypatch):
    async with (
        serving(ROUTES, max_connections=100, max_body_bytes=1_000_000) as hub,
        honest(hub.port) as look,
    ):
        monkeypatch.setattr(bodies, "BODY_SECONDS", 0.2)
        monkeypatch.setattr(protocol, "LINGER_SECONDS", 0.2)
        dripping = asyncio.gather(*(drip(hub.port, BODY_HEAD) for _ in range(50)))
        while not dripping.done():
            assert await look() == 200
        # Whoever still sends when the hub closes may lose its last words.
        assert {said.split()[1] for said in await dripping if said} <= {b"408"}


async def test_a_body_that_comes_slowly_but_steadily_is_read(monkeypatch):
    monkeypatch.setattr(bodies, "BODY_SECONDS", 2)
    monkeypatch.setattr(bodies, "MIN_BODY_BYTES_A_SECOND", 1)
    async with serving(ROUTES) as hub:
        reader, writer = await asyncio.open_connection("127.0.0.1", hub.port)
        head = b"POST /count HTTP/1.1\r\nhost: localhost\r\ncontent-length: 400\r\n\r\n"
        for part in (head + b"x" * 40, *[b"x" * 40] * 9):
            writer.write(part)
            await asyncio.sleep(0.25)
        assert (await read_answer(reader)).text == "400"
        writer.close()


async def test_clients_that_vanish_in_the_middle_of_a_body_leave_nothing_behind(caplog):
    caplog.set_level(logging.INFO)
    async with serving(ROUTES, max_body_bytes=1_000_000) as hub:
        for _ in range(50):
            _, writer = await asyncio.open_connection("127.0.0.1", hub.port)
            writer.write(BODY_HEAD + b"x" * 1000)
            await writer.drain()
            connection = writer.get_extra_info("socket")
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            writer.close()
        while "in_flight 0.0" not in (text := hub.metrics.exposition("")[0].decode()):
            await ask(hub.port)
    assert 'requests_total{method="POST",route="/count",status="499"} 50.0' in text
    assert [record for record in caplog.records if record.exc_info] == []


async def open_idle(stack: ExitStack, port: int, count: int) -> None:
    """Open connections that then say nothing, as many as there is room for."""
    with suppress(OSError):
        for _ in range(count):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            stack.callback(writer.close)


@pytest.mark.long
@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts open files by /proc")
async def test_a_thousand_idle_connections_are_held_to_the_limit(tmp_path):
    limit = 300
    with Process(tmp_path, FOLKMOOT_HTTP_MAX_CONNECTIONS=str(limit)) as hub:
        before, idle = open_files(hub.child.pid), ExitStack()
        for count in (limit + 1, 1000):
            await open_idle(idle, hub.port, count)
            assert (await ask(hub.port, "/health/ready")).status == 200
        assert open_files(hub.child.pid) <= before + 2 * (limit + 1) + 5
        status = await asyncio.to_thread(ask_socket, tmp_path / "control.sock", "folkmoot/status")
        assert status["pid"] == hub.child.pid
        idle.close()
        while open_files(hub.child.pid) > before + 5:
            with suppress(OSError, asyncio.IncompleteReadError):
                await ask(hub.port)
        assert (await ask(hub.port, "/health/ready")).status == 200
        hub.stop()


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="limits another process")
async def test_a_hub_that_may_open_no_more_files_lives_on_until_it_may(tmp_path):
    with Process(tmp_path) as hub:
        before = resource.prlimit(hub.child.pid, resource.RLIMIT_NOFILE)
        reader, writer = await asyncio.open_connection("127.0.0.1", hub.port)
        idle, allowed = ExitStack(), open_files(hub.child.pid) + 10
        resource.prlimit(hub.child.pid, resource.RLIMIT_NOFILE, (allowed, before[1]))
        await open_idle(idle, hub.port, 50)
        control = tmp_path / "control.sock"
        asking = asyncio.create_task(asyncio.to_thread(ask_socket, control, "folkmoot/status"))
        for _ in range(5):
            writer.write(b"GET /health/ready HTTP/1.1\r\nhost: localhost\r\n\r\n")
            assert (await read_answer(reader)).status == 200
        resource.prlimit(hub.child.pid, resource.RLIMIT_NOFILE, before)
        idle.close()
        writer.close()
        assert (await asking)["pid"] == hub.child.pid
        assert (await ask(hub.port, "/health/ready")).status == 200
        hub.stop()


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="limits another process")
def test_a_hub_makes_room_for_the_connections_it_is_to_serve(tmp_path):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    try:
        hub = Process(tmp_path, FOLKMOOT_HTTP_MAX_CONNECTIONS="700")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    with hub:
        assert resource.prlimit(hub.child.pid, resource.RLIMIT_NOFILE)[0] >= 1400
        hub.stop()
