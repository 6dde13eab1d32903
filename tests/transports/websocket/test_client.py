"""The way a client none of us wrote sees the WebSocket side."""

from __future__ import annotations

import asyncio

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidStatus

from folkmoot.core import errors as e
from folkmoot.core.closecodes import CloseCode
from folkmoot.transports.websocket import Refusal, UpgradeRequest, WebSocketConnection
from tests.transports.rooms.support import ending
from tests.transports.websocket.support import Guest, Party, opened


async def end_of(connection: ClientConnection) -> tuple[int, str]:
    """Code and reason of the close, once the connection has ended."""
    end = await ending(connection)
    return end.code, end.reason


@pytest.mark.parametrize("size", [0, 1, 125, 126, 65_535, 65_536, 1_048_576])
async def test_a_message_of_any_allowed_size_comes_to_all_whole(hub, size):
    plain = {"max_size": None, "compression": None}
    async with connect(hub.url, **plain) as ann, connect(hub.url, **plain) as bob:
        await hub.party.number(2)
        for said in ("x" * size, "and on, Bøb"):
            await ann.send(said)
            assert await bob.recv() == await ann.recv() == said


async def test_the_hub_closes_with_code_and_reason_after_what_it_said(hub):
    async with connect(hub.url) as ann:
        guest = await hub.guest()
        guest.on_text(b"last words")
        guest.link.close(4403, "é" * 100)
        guest.on_text(b"too late")
        assert await ann.recv() == "last words"
        assert await end_of(ann) == (4403, "é" * 61)
        await guest.left.wait()
        assert guest.ends == [(4403, "é" * 100)]


class Closed(Party):
    async def accept(self, request: UpgradeRequest) -> Refusal:
        if "room" not in request.query:
            raise e.NotFound("There is nothing at this address.")
        assert request.query == {"room": ["den"], "token": [""]}
        return Refusal(CloseCode.NOT_AUTHENTICATED, "No valid token was given.")


@pytest.mark.settings(party=Closed)
async def test_a_refusal_reaches_the_client_as_a_close_code_and_an_error_as_a_status(hub):
    async with connect(f"{hub.url}?room=den&token=") as ann:
        assert await end_of(ann) == (4401, "No valid token was given.")
    with pytest.raises(InvalidStatus) as refused:
        await connect(hub.url)
    assert hub.endpoint.open_links == 0
    assert refused.value.response.status_code == 404


class Failing(Guest):
    def on_text(self, *messages: bytes) -> None:
        if b"fail" in messages:
            raise LookupError("secret")
        super().on_text(*messages)


class Fragile(Party):
    def enter(self, link: WebSocketConnection) -> Guest:
        if len(self.guests) == 2:
            raise LookupError("broken")
        super().enter(link)
        return Failing(self, link)


@pytest.mark.settings(party=Fragile)
async def test_an_error_in_a_message_or_while_someone_enters_closes_that_link_alone(hub, caplog):
    async with connect(hub.url) as ann, connect(hub.url) as bob, connect(hub.url) as third:
        assert (await end_of(third))[0] == CloseCode.INTERNAL
        await ann.send("fail")
        assert (await end_of(ann))[0] == CloseCode.INTERNAL
        await bob.send("still here")
        assert await bob.recv() == "still here"
    errors = [record.message for record in caplog.records if record.levelname == "ERROR"]
    assert errors == ["a link failed"] * 2


async def test_a_stopping_hub_says_so_and_waits_for_the_answer():
    async with opened() as hub:
        guests = [await connect(hub.url) for _ in range(5)]
        await hub.party.number(5)
        ends = [asyncio.create_task(end_of(each)) for each in guests]
        hub.party.guests[0].on_text(b"said before")
    assert [(await end)[0] for end in ends] == [CloseCode.RESTARTING] * 5
