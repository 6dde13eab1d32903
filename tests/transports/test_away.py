from __future__ import annotations

import asyncio
import logging
from contextlib import suppress

from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from folkmoot.transports.limits import OPEN_FACTOR
from tests.harness import ask, served

LIMIT = 3
ASKED = 20


async def test_those_who_find_no_room_are_counted_and_told_of_together(caplog):
    done = asyncio.Event()

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        await done.wait()
        await PlainTextResponse("here")(scope, receive, send)

    async with served(answer, max_connections=LIMIT) as hub:
        busy = []
        for number in range(OPEN_FACTOR * LIMIT):
            if number == LIMIT:
                for _ in range(ASKED):
                    assert (await ask(hub.port)).status == 503
            busy.append(await asyncio.open_connection("127.0.0.1", hub.port))
            if number < LIMIT:
                busy[-1][1].write(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n")
        for _ in range(ASKED):
            with suppress(OSError, asyncio.IncompleteReadError):
                assert (await ask(hub.port)).status == 503
        done.set()
        for _, writer in busy:
            writer.close()
    counted = hub.metrics.exposition("")[0].decode()
    assert f"folkmoot_http_turned_away_total {2 * ASKED}.0" in counted
    told = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert {record.getMessage() for record in told} == {"connections were turned away"}
    assert sum(vars(record)["count"] for record in told) == 2 * ASKED
    assert len(told) < ASKED
