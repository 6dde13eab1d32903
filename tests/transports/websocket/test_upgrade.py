"""How a connection becomes a WebSocket, and who is not let that far."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

import pytest

from folkmoot.core.closecodes import CloseCode
from folkmoot.transports.guard import Hosts
from folkmoot.transports.websocket import Handler, Refusal, UpgradeRequest, WebSocketConnection
from folkmoot.transports.websocket.frames import LOST
from tests.harness import ask, read_answer
from tests.transports.websocket.support import (
    KEY,
    Client,
    Guest,
    Party,
    client,
    frame,
    handshake,
)

LENGTH, BODY = "Content-Length", b"hello"
PAGE = b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n"

REFUSED: dict[str, tuple[dict[str, str | None], int]] = {
    "a foreign host": ({"Host": "evil.example"}, 421),
    "no host": ({"Host": None}, 421),
    "a page of another origin": ({"Origin": "https://evil.example"}, 403),
    "a page of no origin": ({"Origin": "null"}, 403),
    "no version": ({"Sec-WebSocket-Version": None}, 426),
    "an old version": ({"Sec-WebSocket-Version": "8"}, 426),
    "two versions": ({"Sec-WebSocket-Version": "13, 8"}, 426),
    "no key": ({"Sec-WebSocket-Key": None}, 400),
    "a short key": ({"Sec-WebSocket-Key": "c2hvcnQ="}, 400),
    "a key that is not base64": ({"Sec-WebSocket-Key": "?" * 24}, 400),
    "two keys": ({"sec-websocket-key": KEY}, 400),
    "a body": ({LENGTH: "5"}, 400),
    "another protocol": ({"Upgrade": "h2c"}, 426),
    "no upgrade": ({"Connection": "keep-alive"}, 426),
}


@pytest.mark.parametrize("name", REFUSED)
async def test_a_request_that_may_not_become_a_websocket_gets_a_status(hub, caller, name):
    headers, status = REFUSED[name]
    caller.send(handshake(headers=headers) + BODY[: int(headers.get(LENGTH) or 0)])
    answer = await read_answer(caller.reader)
    assert answer.status == status
    assert ("sec-websocket-version" in answer.headers) == (status == 426)
    assert hub.endpoint.opened == 0
    assert (await ask(hub.port)).status == 200


@pytest.mark.parametrize("origin", ["http://localhost:3000", "https://friend.example"])
@pytest.mark.settings(hosts=Hosts("127.0.0.1", origins=["https://friend.example"]))
async def test_a_page_of_an_allowed_origin_comes_in(caller, origin):
    assert (await caller.ask(Origin=origin)).status == 101


@pytest.mark.parametrize(("path", "status"), [("/nowhere", 404), ("/", 200)])
async def test_an_upgrade_at_another_address_is_an_ordinary_request(caller, path, status):
    assert (await caller.ask(path, after=frame(b"hello"))).status == status
    assert await caller.reader.read() == b""


async def test_a_plain_request_is_told_that_the_address_is_for_websockets(hub):
    answer = await ask(hub.port, "/ws")
    assert answer.status == 426
    assert answer.headers["upgrade"] == "websocket"
    assert answer.json()["error"]["code"] == "upgrade_required"


async def test_requests_before_the_upgrade_are_answered_on_the_same_connection(caller):
    for _ in range(3):
        caller.send(PAGE)
        assert (await read_answer(caller.reader)).status == 200
    assert (await caller.ask(after=frame(b"first"))).status == 101
    assert await caller.text() == b"first"
    caller.send(frame(b"second"))
    assert await caller.text() == b"second"


async def test_an_upgrade_may_be_sent_right_behind_other_requests(caller):
    caller.send(PAGE * 5, handshake(), frame(b"first"))
    answers = [(await read_answer(caller.reader)).status for _ in range(6)]
    assert answers == [200] * 5 + [101]
    assert await caller.text() == b"first"


class Slow(Party):
    """Takes its time at the door."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = asyncio.Event()
        self.decided = asyncio.Event()

    async def accept(
        self, request: UpgradeRequest
    ) -> Callable[[WebSocketConnection], Handler] | Refusal:
        self.asked.set()
        await self.decided.wait()
        return self.enter


@pytest.mark.settings(party=Slow)
async def test_what_is_sent_while_the_door_decides_is_heard_afterwards(hub, caller):
    caller.send(handshake(), frame(b"with the head"))
    await hub.party.asked.wait()
    caller.send(frame(b"early"))
    await caller.writer.drain()
    assert (await ask(hub.port)).status == 200
    hub.party.decided.set()
    assert (await read_answer(caller.reader)).status == 101
    assert [await caller.text(), await caller.text()] == [b"with the head", b"early"]


class Busy(Party):
    """Reads nothing at first of those who come in."""

    def enter(self, link: WebSocketConnection) -> Guest:
        link.pause_reading()
        return super().enter(link)


@pytest.mark.settings(party=Busy)
async def test_who_enters_may_put_off_what_the_client_sends(hub, one):
    one.send(frame(b"hello"))
    await one.writer.drain()
    assert (await ask(hub.port)).status == 200
    assert hub.party.guests[0].heard == []
    hub.party.guests[0].link.resume_reading()
    assert await one.text() == b"hello"


@pytest.mark.settings(party=Slow)
async def test_no_more_is_read_while_the_door_decides_than_fits_the_systems_buffers(hub, caller):
    caller.send(PAGE * 3, handshake())
    await hub.party.asked.wait()
    caller.send(frame(b"x" * 1000) * 24_000)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(caller.writer.drain(), 1)
    caller.leave()
    hub.party.decided.set()


@pytest.mark.settings(party=Slow)
async def test_a_hub_that_stops_while_the_door_decides_closes_the_new_link(hub, caller):
    caller.send(handshake())
    await hub.party.asked.wait()
    hub.hub.server.stop()
    with suppress(OSError, asyncio.IncompleteReadError):
        while await ask(hub.port):
            pass
    hub.party.decided.set()
    assert (await read_answer(caller.reader)).status == 101
    assert await caller.closed() == CloseCode.RESTARTING


@pytest.mark.settings(max_connections=2)
async def test_websockets_count_among_the_connections(hub):
    async with client(hub) as one, client(hub):
        assert (await ask(hub.port)).status == 503
        third = await Client.connect(hub.port)
        assert (await third.ask()).status == 503
        third.leave()
        one.send(frame(b"still served"))
        assert await one.text() == b"still served"
    while (await ask(hub.port)).status == 503:
        assert hub.endpoint.open_links
    assert hub.endpoint.closed == {LOST: 2}


async def test_an_opened_websocket_is_counted_as_a_request_with_its_id(hub, caller):
    answer = await caller.ask("/ws?token=secret")
    assert len(answer.headers["x-request-id"]) == 16
    counted = hub.hub.metrics.exposition("")[0].decode()
    assert 'route="/ws",status="101"' in counted.replace(" ", "")
