"""The way a client none of us wrote sees the WebSocket side."""

from __future__ import annotations

import asyncio

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from folkmoot.core import errors as e
from folkmoot.core.closecodes import CloseCode
from folkmoot.transports.websocket import Handler, Refusal, UpgradeRequest, WebSocketConnection
from tests.transports.websocket.support import Guest, Party, opened


async def code_of(connection: ClientConnection) -> int | None:
    """The close code, once the connection has ended."""
    try:
        while True:
            await connection.recv()
    except ConnectionClosed as end:
        return end.rcvd.code if end.rcvd else None


async def test_what_one_says_all_hear_and_the_speaker_too(hub):
    async with connect(hub.url) as ann, connect(hub.url) as bob:
        await hub.party.number(2)
        await ann.send("hello, Bøb")
        assert await bob.recv() == await ann.recv() == "hello, Bøb"


@pytest.mark.parametrize("size", [0, 1, 125, 126, 65_535, 65_536, 1_048_576])
async def test_a_message_of_any_allowed_size_comes_back_whole(hub, size):
    async with connect(hub.url, max_size=None, compression=None) as ann:
        await ann.send("x" * size)
        assert await ann.recv() == "x" * size
        await ann.send("and on")
        assert await ann.recv() == "and on"


async def test_a_close_is_answered_with_its_code(hub):
    async with connect(hub.url) as ann:
        await ann.close(4321, "done")
        assert (ann.close_code, ann.close_reason) == (4321, "done")
    await hub.party.guests[0].left.wait()
    assert len(hub.party.audience) == 0
    found = hub.party.guests[0]
    assert found.ends == [(4321, "done")]


async def test_the_hub_closes_with_code_and_reason_after_what_it_said(hub):
    async with connect(hub.url) as ann:
        guest = await hub.guest()
        guest.on_text(b"last words")
        guest.link.close(4403, "é" * 100)
        guest.on_text(b"too late")
        assert await ann.recv() == "last words"
        with pytest.raises(ConnectionClosed) as closed:
            await ann.recv()
        assert closed.value.rcvd
        assert closed.value.rcvd.code == 4403
        assert closed.value.rcvd.reason == "é" * 61
        await guest.left.wait()
        assert guest.ends == [(4403, "é" * 100)]


async def test_a_refusal_reaches_the_client_as_a_close_code():
    class Closed(Party):
        async def accept(self, request: UpgradeRequest) -> Refusal:
            assert request.query == {"room": ["den"], "token": [""]}
            return Refusal(CloseCode.NOT_AUTHENTICATED, "No valid token was given.")

    async with opened(party=Closed()) as at:
        async with connect(f"{at.url}?room=den&token=") as ann:
            with pytest.raises(ConnectionClosed) as closed:
                await ann.recv()
        assert closed.value.rcvd
        assert closed.value.rcvd.code == 4401
        assert closed.value.rcvd.reason == "No valid token was given."


async def test_an_error_at_the_door_is_an_http_status():
    class Absent(Party):
        async def accept(self, request: UpgradeRequest) -> Refusal:
            raise e.NotFound("There is nothing at this address.")

    async with opened(party=Absent()) as at:
        with pytest.raises(InvalidStatus) as refused:
            await connect(at.url)
        assert at.endpoint.open_links == 0
        assert refused.value.response.status_code == 404


async def test_an_error_in_a_message_closes_its_own_link_alone(caplog):
    class Failing(Guest):
        def on_text(self, *messages: bytes) -> None:
            if b"fail" in messages:
                raise LookupError("secret")
            super().on_text(*messages)

    class Fragile(Party):
        def enter(self, link: WebSocketConnection) -> Handler:  # type: ignore[override]
            super().enter(link)
            return Failing(self, link)

    async with opened(party=Fragile()) as at, connect(at.url) as ann, connect(at.url) as bob:
        await ann.send("fail")
        code = await code_of(ann)
        await bob.send("still here")
        assert await bob.recv() == "still here"
    assert code == CloseCode.INTERNAL
    assert [record.message for record in caplog.records if record.levelname == "ERROR"] == [
        "a link failed"
    ]


async def test_an_error_while_someone_enters_closes_the_link(caplog):
    class Broken(Party):
        def enter(self, link: WebSocketConnection) -> Guest:
            raise LookupError("broken")

    async with opened(party=Broken()) as at, connect(at.url) as ann:
        assert await code_of(ann) == CloseCode.INTERNAL
    assert "a link failed" in caplog.text


async def test_a_stopping_hub_says_so_and_waits_for_the_answer():
    async with opened() as hub:
        guests = [await connect(hub.url) for _ in range(5)]
        await hub.party.number(5)
        ends = [asyncio.create_task(code_of(each)) for each in guests]
        hub.party.guests[0].on_text(b"said before")
    assert [await end for end in ends] == [CloseCode.RESTARTING] * 5
