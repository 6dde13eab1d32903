from __future__ import annotations

import asyncio
import logging
from contextlib import suppress

from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from folkmoot.clock import SystemClock
from folkmoot.telemetry.metrics import Metrics
from folkmoot.transports.limits import OPEN_FACTOR
from folkmoot.transports.listen import listen
from folkmoot.transports.server import HttpServer
from tests.harness import ask

LIMIT = 3
ASKED = 20


async def being_answered(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n")
    return reader, writer


async def test_those_who_find_no_room_are_counted_and_told_of_together(caplog):
    metrics = Metrics(version="0", clock=SystemClock())
    done = asyncio.Event()

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        await done.wait()
        await PlainTextResponse("here")(scope, receive, send)

    sockets = listen("127.0.0.1", 0)
    port = sockets[0].getsockname()[1]
    server = HttpServer(
        answer,
        sockets,
        max_connections=LIMIT,
        shutdown_seconds=1,
        metrics=metrics,
    )
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(server.serve())
        await server.listening()
        busy = [await being_answered(port) for _ in range(LIMIT)]
        for _ in range(ASKED):
            assert (await ask(port)).status == 503
        while len(busy) < OPEN_FACTOR * LIMIT:
            busy.append(await asyncio.open_connection("127.0.0.1", port))
        for _ in range(ASKED):
            with suppress(OSError, asyncio.IncompleteReadError):
                assert (await ask(port)).status == 503
        done.set()
        for _, writer in busy:
            writer.close()
        server.stop()
    assert f"folkmoot_http_turned_away_total {2 * ASKED}.0" in metrics.exposition("")[0].decode()
    told = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert {record.getMessage() for record in told} == {"connections were turned away"}
    assert sum(vars(record)["count"] for record in told) == 2 * ASKED
    assert len(told) < ASKED
