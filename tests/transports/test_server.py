from __future__ import annotations

import asyncio
import contextlib
import math
import re

import httpx2
import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from tests.harness import ask, serving


class Slow:
    """A route that answers when it is told to."""

    def __init__(self) -> None:
        self.began = asyncio.Event()
        self.go_on = asyncio.Event()
        self.cancelled = False

    async def answer(self, _: Request) -> Response:
        self.began.set()
        try:
            await self.go_on.wait()
        except asyncio.CancelledError:
            self.cancelled = True
            raise
        return PlainTextResponse("finished")

    @property
    def route(self) -> Route:
        return Route("/slow", self.answer)


async def test_stopping_finishes_what_is_in_flight():
    slow = Slow()
    async with asyncio.TaskGroup() as tasks:
        async with serving([slow.route]) as hub:
            request = tasks.create_task(ask(hub.port, "/slow"))
            await slow.began.wait()
            hub.server.stop()
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                while await ask(hub.port):
                    pass
            assert not request.done()
            slow.go_on.set()
        assert (await request).text == "finished"
        assert not slow.cancelled


async def test_whoever_has_nothing_in_flight_stops_at_once():
    # uvicorn alone would take a fifth of a second for each; a busy machine does now and then.
    loop, began = asyncio.get_running_loop(), -math.inf
    while loop.time() - began > 0.9:
        began = loop.time()
        for _ in range(5):
            async with serving() as hub:
                assert (await ask(hub.port)).status == 200


@pytest.mark.parametrize("force", [False, True])
async def test_stopping_ends_what_does_not_finish_in_time_and_forced_it_does_not_wait(force):
    slow = Slow()
    seconds = 60 if force else 0
    async with asyncio.timeout(30), serving([slow.route], shutdown_seconds=seconds) as hub:
        request = asyncio.create_task(ask(hub.port, "/slow"))
        await slow.began.wait()
        if force:
            hub.server.stop(force=True)
    assert slow.cancelled
    answer = await request
    assert answer.status == 503
    assert answer.json()["error"]["code"] == "hub_stopping"


async def test_an_idle_connection_does_not_hold_up_the_stop():
    async with asyncio.timeout(30):
        async with serving(shutdown_seconds=60) as hub:
            reader, writer = await asyncio.open_connection("127.0.0.1", hub.port)
        assert await reader.read() == b""
        writer.close()


@pytest.mark.long
async def test_an_idle_connection_is_kept_for_as_long_as_clients_use_it_again(dial):
    expiry = httpx2.Limits().keepalive_expiry
    assert expiry is not None
    reader, writer = await dial()
    for pause in (0.0, expiry + 1.0):
        await asyncio.sleep(pause)
        writer.write(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        head = await reader.readuntil(b"\r\n\r\n")
        assert b" 200 OK" in head
        (length,) = re.findall(rb"content-length: (\d+)", head)
        await reader.readexactly(int(length))


async def test_a_client_that_leaves_ends_nothing_but_its_own_request():
    slow = Slow()
    async with serving([slow.route]) as hub:
        _, writer = await asyncio.open_connection("127.0.0.1", hub.port)
        writer.write(b"GET /slow HTTP/1.1\r\nhost: localhost\r\n\r\n")
        await slow.began.wait()
        writer.close()
        slow.go_on.set()
        assert (await ask(hub.port)).status == 200


@pytest.mark.settings(address="::1")
async def test_ipv6_is_served(hub):
    headers = {"host": f"[::1]:{hub.port}"}
    assert (await ask(hub.port, address="::1", headers=headers)).status == 200
