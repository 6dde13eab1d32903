"""Too many connections: who is served, who is told to wait, and which are closed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import Scope

from folkmoot.transports import connections
from folkmoot.transports.connections import sign_in
from folkmoot.transports.limits import SHED_SHARE, SIGNED_IN_RESERVE
from tests.conftest import settings_of
from tests.harness import Serving, ask, reached, read_answer, serving
from tests.transports.conftest import Dial

MOST = 40
OPEN_TO_ALL = MOST - MOST // SIGNED_IN_RESERVE
HALF_A_BODY = b"POST /read HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9\r\n\r\nx"
HALF_A_HEAD = b"GET / HTTP/1.1\r\nhost: local"
PAGE, WAIT = (b"GET /%b HTTP/1.1\r\nhost: localhost\r\n%%b\r\n" % it for it in (b"", b"wait"))
ME = b"x-me: me\r\n"


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


@pytest.fixture
def place() -> Place:
    return Place()


@pytest.fixture
async def hub(place: Place, request: pytest.FixtureRequest) -> AsyncIterator[Serving]:
    options = {"max_connections": MOST, "identify": identify, **settings_of(request)}
    async with serving(place.routes(), **options) as made:
        try:
            yield made
        finally:
            place.done.set()


@pytest.fixture
async def flood(dial: Dial) -> Any:
    """Open many connections, which do not come to an end."""

    async def open_many(
        sent: bytes, count: int, source: str = "127.0.0.1"
    ) -> list[asyncio.StreamReader]:
        return [(await dial(sent, source))[0] for _ in range(count)]

    return open_many


def ended(readers: list[asyncio.StreamReader]) -> list[int]:
    """Which of some connections were closed."""
    return [place for place, reader in enumerate(readers) if reader.at_eof()]


def shed(hub: Serving) -> float:
    value = hub.metrics.registry.get_sample_value("folkmoot_http_connections_shed_total")
    return value or 0.0


@pytest.mark.parametrize("sent", [b"", HALF_A_HEAD, HALF_A_BODY], ids=["silent", "head", "body"])
async def test_connections_that_do_not_come_to_an_end_are_closed_for_others(
    hub, flood, monkeypatch, sent
):
    monkeypatch.setattr(connections, "IDLE_SECONDS", 0.0)
    await flood(sent, 3 * MOST)
    for _ in range(5):
        assert (await ask(hub.port, "/")).status == 200
        assert (await ask(hub.port, "/health")).status == 200
    assert shed(hub) > 0


async def test_the_address_with_most_idle_connections_loses_its_newest_first(
    hub, flood, monkeypatch
):
    monkeypatch.setattr(connections, "IDLE_SECONDS", 0.0)
    newest, gone = OPEN_TO_ALL - 6, MOST // SHED_SHARE
    idle = await flood(b"", newest, "127.0.0.9") + await flood(b"", 6, "127.0.0.8")
    assert (await ask(hub.port, "/")).status == 200
    await reached(lambda: len(ended(idle)) >= gone)
    assert ended(idle) == list(range(newest - gone, newest))


async def test_places_are_kept_for_health_and_for_those_who_are_signed_in(hub, place, flood):
    # Nothing of this is idle: it is answered, and takes its time.
    await flood(WAIT % b"", OPEN_TO_ALL)
    await reached(lambda: place.waiting >= OPEN_TO_ALL)
    refused = await ask(hub.port, "/")
    assert refused.status == 503
    assert refused.json()["error"]["code"] == "hub_full"
    assert int(refused.headers["retry-after"]) > 0
    assert (await ask(hub.port, "/", headers=me())).status == 200
    assert (await ask(hub.port, "/health")).status == 200
    assert (await ask(hub.port, connections.FORWARD_PATH)).status == 200
    await flood(WAIT % ME, MOST - OPEN_TO_ALL)
    await reached(lambda: place.waiting >= MOST)
    assert (await ask(hub.port, "/", headers=me())).status == 503
    assert (await ask(hub.port, "/health")).status == 200
    assert (await ask(hub.port, connections.FORWARD_PATH)).status == 200
    assert shed(hub) == 0


@pytest.mark.settings(per_address=5)
async def test_one_address_has_few_connections_without_an_account(hub, place, flood, monkeypatch):
    monkeypatch.setattr(connections, "IDLE_CHECK_SECONDS", 0.0)
    await flood(WAIT % b"", 5, "127.0.0.9")
    await reached(lambda: place.waiting >= 5)
    [refused] = await flood(PAGE % b"", 1, "127.0.0.9")
    assert (await read_answer(refused)).status == 503
    # Others, and those at the same address who are signed in, notice nothing.
    assert (await ask(hub.port, "/")).status == 200
    [mine] = await flood(PAGE % ME, 1, "127.0.0.9")
    assert (await read_answer(mine)).status == 200


@pytest.mark.settings(per_address=5)
async def test_an_address_over_its_limit_loses_idle_connections_of_its_own(flood, monkeypatch):
    monkeypatch.setattr(connections, "IDLE_SECONDS", 0.0)
    monkeypatch.setattr(connections, "IDLE_CHECK_SECONDS", 0.0)
    others = await flood(HALF_A_BODY, 3)
    own = await flood(HALF_A_BODY, 20, "127.0.0.9")
    await reached(lambda: len(ended(own)) >= 15)
    assert ended(others) == []


@pytest.mark.settings(per_account=5)
async def test_one_account_has_a_bounded_number_of_connections(hub, place, flood):
    waiting = await flood(WAIT % (ME + b"connection: close\r\n"), 5)
    await reached(lambda: place.waiting >= 5)
    refused = await ask(hub.port, "/wait", headers=me())
    assert refused.status == 429
    assert refused.json()["error"]["code"] == "connections_exceeded"
    assert (await ask(hub.port, "/read", method="POST", headers=me("you"))).status == 200
    place.done.set()
    for reader in waiting:
        assert (await read_answer(reader)).status == 200
    while (await ask(hub.port, "/wait", headers=me())).status != 200:
        pass
