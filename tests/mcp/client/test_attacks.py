"""What a hostile server, or bad luck, may do to a link."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from folkmoot.clock import SystemClock
from folkmoot.core import errors as e
from folkmoot.core.message import Notification, Response
from folkmoot.core.transport import Headers
from folkmoot.mcp.client.oldsse import OldSseLink
from folkmoot.mcp.client.stdio import StdioLink
from tests.mcp.client.places import Asked, Place, event, result
from tests.mcp.client.saying import ask, linked, open_descriptors, python, request
from tests.mcp.server.played import until

TALKER = """
import fcntl, os
fcntl.fcntl(1, fcntl.F_SETPIPE_SZ, 2**20)
for number in range(95):
    long = b"x" * 20_000
    os.write(1, b'{"jsonrpc":"2.0","method":"notifications/x","params":{"x":"%s"}}\\n' % long)
"""


async def test_the_last_words_of_a_server_are_heard_however_late_they_are_read(monkeypatch):
    monkeypatch.setattr("folkmoot.mcp.client.stdio.REST_SECONDS", 0.05)
    async with StdioLink(python(TALKER), SystemClock()) as link:
        await until(lambda: link.returncode is not None)
        # More is in the pipe than is read ahead, for longer than what is on its way may take.
        await asyncio.sleep(0.2)
        heard = 0
        with suppress(e.TransportClosed):
            while True:
                assert isinstance(await link.receive(), Notification)
                heard += 1
        assert heard == 95


async def test_a_link_that_is_cancelled_while_it_opens_closes_what_is_its_own_and_no_more():
    async def opened(turns: int) -> None:
        async def hold() -> None:
            async with StdioLink(["/bin/cat"], SystemClock()):
                await asyncio.Event().wait()

        async with asyncio.TaskGroup() as tasks:
            task = tasks.create_task(hold())
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()

    await opened(0)
    before = open_descriptors()
    for turns in range(10):
        await opened(turns)
    async with StdioLink(["/bin/cat"], SystemClock()) as link:
        await link.send(request("x", 1))
        assert (await link.receive()).id == 1  # type: ignore[union-attr]
    assert open_descriptors() <= before + 1


@pytest.mark.long
async def test_an_event_id_that_no_header_can_hold_ends_no_conversation():
    async def do(asked: Asked) -> None:
        if asked.method != "POST":
            await asked.say(405)
        elif asked.message["id"] == 1:
            await asked.events(b"id: a\x01b\nretry: 1\ndata:\n\n", end=False)
            asked.hang_up()
        else:
            await asked.result({})

    async with Place(do).open() as place, linked(place.url) as link:
        assert (await ask(link, request("x", 1))).error
        assert await ask(link, request("x", 2)) == Response(id=2, result={})


async def test_a_server_cannot_have_us_log_in_as_somebody_by_naming_an_address():
    async def do(asked: Asked) -> None:
        if asked.path == "/mcp" and asked.method == "GET":
            where = f"event: endpoint\ndata: http://eve:secret@{asked.headers['host']}/messages\n\n"
            await asked.events(where.encode(), event(result(1)), end=False)
        else:
            await asked.say(202)

    async with Place(do).open() as place:
        ours = {"headers": Headers((("authorization", "Bearer ours"),))}
        async with linked(place.url, OldSseLink, target=ours) as link:
            await ask(link, request("x", 1))
            await until(lambda: bool(place.of("POST")))
            [posted] = place.of("POST")
            assert posted.headers["authorization"] == "Bearer ours"
