"""How a connection becomes a WebSocket, and who is not let that far."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

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
    opened,
)

LENGTH, BODY = "Content-Length", b"hello"

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
async def test_a_request_that_may_not_become_a_websocket_gets_a_status(hub, name):
    headers, status = REFUSED[name]
    one = await Client.connect(hub.port)
    one.writer.write(handshake(headers=headers) + BODY[: int(headers.get(LENGTH) or 0)])
    answer = await read_answer(one.reader)
    one.leave()
    assert answer.status == status
    assert hub.endpoint.opened == 0
    assert (await ask(hub.port)).status == 200
    told = answer.headers
    assert ("sec-websocket-version" in told) == (status == 426)


@pytest.mark.parametrize("origin", ["http://localhost:3000", "https://friend.example"])
@pytest.mark.settings(hosts=Hosts("127.0.0.1", origins=["https://friend.example"]))
async def test_a_page_of_an_allowed_origin_comes_in(hub, origin):
    one = await Client.connect(hub.port)
    answer = await one.ask(Origin=origin)
    one.leave()
    assert answer.status == 101


async def test_an_upgrade_at_another_address_is_an_ordinary_request(hub):
    one, other = await Client.connect(hub.port), await Client.connect(hub.port)
    absent = await one.ask("/nowhere", after=frame(b"hello"))
    page = await other.ask("/", after=frame(b"hello"))
    assert await other.reader.read() == b""
    one.leave()
    other.leave()
    assert (absent.status, page.status) == (404, 200)


async def test_a_plain_request_is_told_that_the_address_is_for_websockets(hub):
    answer = await ask(hub.port, "/ws")
    assert answer.status == 426
    assert answer.headers["upgrade"] == "websocket"
    assert answer.json()["error"]["code"] == "upgrade_required"


async def test_requests_before_the_upgrade_are_answered_on_the_same_connection(hub):
    one = await Client.connect(hub.port)
    for _ in range(3):
        one.writer.write(b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n")
        assert (await read_answer(one.reader)).status == 404
    assert (await one.ask(after=frame(b"first"))).status == 101
    assert await one.text() == b"first"
    one.send(frame(b"second"))
    assert await one.text() == b"second"
    one.leave()


async def test_an_upgrade_may_be_sent_right_behind_other_requests(hub):
    one = await Client.connect(hub.port)
    page = b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n"
    one.writer.write(page * 5 + handshake() + frame(b"first"))
    for _ in range(5):
        assert (await read_answer(one.reader)).status == 200
    assert (await read_answer(one.reader)).status == 101
    assert await one.text() == b"first"
    one.leave()


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


async def test_what_is_sent_while_the_door_decides_is_heard_afterwards():
    party = Slow()
    async with opened(party=party) as at:
        one = await Client.connect(at.hub.port)
        one.writer.write(handshake() + frame(b"with the head"))
        await party.asked.wait()
        one.send(frame(b"early"))
        await one.writer.drain()
        assert (await ask(at.hub.port)).status == 200
        party.decided.set()
        assert (await read_answer(one.reader)).status == 101
        assert await one.text() == b"with the head"
        assert await one.text() == b"early"
        one.leave()


async def test_who_enters_may_put_off_what_the_client_sends():
    class Busy(Party):
        def enter(self, link: WebSocketConnection) -> Guest:
            link.pause_reading()
            return super().enter(link)

    party = Busy()
    async with opened(party=party) as at, client(at) as one:
        one.send(frame(b"hello"))
        await one.writer.drain()
        assert (await ask(at.hub.port)).status == 200
        assert party.guests[0].heard == []
        party.guests[0].link.resume_reading()
        assert await one.text() == b"hello"


async def test_no_more_is_read_while_the_door_decides_than_fits_the_systems_buffers():
    party = Slow()
    async with opened(party=party) as at:
        one = await Client.connect(at.hub.port)
        page = b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n"
        one.writer.write(page * 3 + handshake())
        await party.asked.wait()
        one.send(frame(b"x" * 1000) * 24_000)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(one.writer.drain(), 1)
        one.leave()
        party.decided.set()


async def test_a_hub_that_stops_while_the_door_decides_closes_the_new_link():
    party = Slow()
    one: Client
    async with opened(party=party) as at:
        one = await Client.connect(at.hub.port)
        one.writer.write(handshake())
        await party.asked.wait()
        at.hub.server.stop()
        while True:
            try:
                await ask(at.hub.port)
            except (OSError, asyncio.IncompleteReadError):
                break
        party.decided.set()
        assert (await read_answer(one.reader)).status == 101
        code = await one.closed()
        one.leave()
    assert code == CloseCode.RESTARTING


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


async def test_an_opened_websocket_is_counted_as_a_request_with_its_id(hub):
    one = await Client.connect(hub.port)
    answer = await one.ask("/ws?token=secret")
    assert len(answer.headers["x-request-id"]) == 16
    counted = hub.hub.metrics.exposition("")[0].decode()
    assert 'route="/ws",status="101"' in counted.replace(" ", "")
    one.leave()
