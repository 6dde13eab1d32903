"""Too many connections: who is served, who is told to wait, and which are closed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import Scope

from folkmoot.transports import connections
from folkmoot.transports.connections import sign_in
from folkmoot.transports.limits import SHED_SHARE, SIGNED_IN_RESERVE
from tests.harness import Serving, ask, reached, read_answer, serving

MOST = 40
OPEN_TO_ALL = MOST - MOST // SIGNED_IN_RESERVE
HALF_A_BODY = b"POST /read HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9\r\n\r\nx"
HALF_A_HEAD = b"GET / HTTP/1.1\r\nhost: local"


def me(name: str = "me") -> dict[str, str]:
    return {"x-me": name}


async def identify(scope: Scope) -> str:
    caller = dict(scope["headers"]).get(b"x-me", b"").decode()
    if caller:
        sign_in(scope, caller)
    return caller


class Place:
    """Routes that read, and that answer when they are told to."""

    def __init__(self) -> None:
        self.done = asyncio.Event()
        self.waiting = 0

    async def wait(self, request: Request) -> Response:
        await identify(request.scope)
        self.waiting += 1
        await self.done.wait()
        return PlainTextResponse("done")

    async def read(self, request: Request) -> Response:
        await identify(request.scope)
        return PlainTextResponse(str(len(await request.body())))

    async def health(self, _: Request) -> Response:
        return PlainTextResponse("ok")

    def routes(self) -> list[Route]:
        return [
            Route("/wait", self.wait),
            Route("/read", self.read, methods=["POST"]),
            *(Route(path, self.health) for path in ("/health", connections.FORWARD_PATH)),
        ]


class Flood:
    """Connections that are opened and do not come to an end."""

    def __init__(self) -> None:
        self._open: list[asyncio.StreamWriter] = []
        self.readers: list[asyncio.StreamReader] = []

    async def open(self, port: int, sent: bytes, count: int, address: str = "127.0.0.1") -> None:
        for _ in range(count):
            reader, writer = await asyncio.open_connection(
                "127.0.0.1", port, local_addr=(address, 0)
            )
            writer.write(sent)
            self._open.append(writer)
            self.readers.append(reader)

    def close(self) -> None:
        for writer in self._open:
            writer.close()


@asynccontextmanager
async def flooded(**options: Any) -> AsyncIterator[tuple[Serving, Place, Flood]]:
    place, flood = Place(), Flood()
    options = {"max_connections": MOST, "identify": identify, "max_body_bytes": 4096, **options}
    async with serving(place.routes(), **options) as hub:
        try:
            yield hub, place, flood
        finally:
            place.done.set()
            flood.close()


async def shed(hub: Serving) -> float:
    value = hub.metrics.registry.get_sample_value("folkmoot_http_connections_shed_total")
    return value or 0.0


@pytest.mark.parametrize("sent", [b"", HALF_A_HEAD, HALF_A_BODY], ids=["silent", "head", "body"])
async def test_connections_that_do_not_come_to_an_end_are_closed_for_others(monkeypatch, sent):
    monkeypatch.setattr(connections, "IDLE_SECONDS", 0.0)
    async with flooded() as (hub, _, flood):
        await flood.open(hub.port, sent, 3 * MOST)
        for _ in range(5):
            assert (await ask(hub.port, "/")).status == 200
            assert (await ask(hub.port, "/health")).status == 200
        assert await shed(hub) > 0


async def test_the_address_with_most_idle_connections_loses_its_newest_first(monkeypatch):
    monkeypatch.setattr(connections, "IDLE_SECONDS", 0.0)
    async with flooded() as (hub, _, flood):
        await flood.open(hub.port, b"", OPEN_TO_ALL - 6, "127.0.0.9")
        await flood.open(hub.port, b"", 6, "127.0.0.8")
        assert (await ask(hub.port, "/")).status == 200
        gone = MOST // SHED_SHARE
        await reached(lambda: sum(reader.at_eof() for reader in flood.readers) >= gone)
        ended = [place for place, reader in enumerate(flood.readers) if reader.at_eof()]
        newest = OPEN_TO_ALL - 6
        assert ended == list(range(newest - gone, newest))


async def test_places_are_kept_for_health_and_for_those_who_are_signed_in():
    async with flooded() as (hub, place, flood):
        # Nothing of this is idle: it is answered, and takes its time.
        await flood.open(hub.port, b"GET /wait HTTP/1.1\r\nhost: localhost\r\n\r\n", OPEN_TO_ALL)
        await reached(lambda: place.waiting >= OPEN_TO_ALL)
        refused = await ask(hub.port, "/")
        assert refused.status == 503
        assert refused.json()["error"]["code"] == "hub_full"
        assert int(refused.headers["retry-after"]) > 0
        assert (await ask(hub.port, "/", headers=me())).status == 200
        assert (await ask(hub.port, "/health")).status == 200
        assert (await ask(hub.port, connections.FORWARD_PATH)).status == 200
        waiting = b"GET /wait HTTP/1.1\r\nhost: localhost\r\nx-me: me\r\n\r\n"
        await flood.open(hub.port, waiting, MOST - OPEN_TO_ALL)
        await reached(lambda: place.waiting >= MOST)
        assert (await ask(hub.port, "/", headers=me())).status == 503
        assert (await ask(hub.port, "/health")).status == 200
        assert (await ask(hub.port, connections.FORWARD_PATH)).status == 200
        assert await shed(hub) == 0


async def test_one_address_has_few_connections_without_an_account(monkeypatch):
    monkeypatch.setattr(connections, "IDLE_CHECK_SECONDS", 0.0)
    async with flooded(per_address=5) as (hub, place, flood):
        waiting = b"GET /wait HTTP/1.1\r\nhost: localhost\r\n\r\n"
        await flood.open(hub.port, waiting, 5, "127.0.0.9")
        await reached(lambda: place.waiting >= 5)
        await flood.open(hub.port, b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n", 1, "127.0.0.9")
        assert (await read_answer(flood.readers[-1])).status == 503
        # Others, and those at the same address who are signed in, notice nothing.
        assert (await ask(hub.port, "/")).status == 200
        mine = b"GET / HTTP/1.1\r\nhost: localhost\r\nx-me: me\r\n\r\n"
        await flood.open(hub.port, mine, 1, "127.0.0.9")
        assert (await read_answer(flood.readers[-1])).status == 200


async def test_an_address_over_its_limit_loses_idle_connections_of_its_own(monkeypatch):
    monkeypatch.setattr(connections, "IDLE_SECONDS", 0.0)
    monkeypatch.setattr(connections, "IDLE_CHECK_SECONDS", 0.0)
    async with flooded(per_address=5) as (hub, _, flood):
        await flood.open(hub.port, HALF_A_BODY, 3)
        await flood.open(hub.port, HALF_A_BODY, 20, "127.0.0.9")
        await reached(lambda: sum(reader.at_eof() for reader in flood.readers) >= 15)
        assert not any(reader.at_eof() for reader in flood.readers[:3])


async def test_one_account_has_a_bounded_number_of_connections():
    async with flooded(per_account=5) as (hub, place, flood):
        waiting = b"GET /wait HTTP/1.1\r\nhost: localhost\r\nx-me: me\r\n\r\n"
        await flood.open(hub.port, waiting, 5)
        await reached(lambda: place.waiting >= 5)
        refused = await ask(hub.port, "/wait", headers=me())
        assert refused.status == 429
        assert refused.json()["error"]["code"] == "connections_exceeded"
        assert (await ask(hub.port, "/read", method="POST", headers=me("you"))).status == 200
        place.done.set()
        for reader in flood.readers:
            assert (await read_answer(reader)).status == 200
        flood.close()
        while (await ask(hub.port, "/wait", headers=me())).status != 200:
            pass
