"""The way a client none of us wrote sees the WebSocket side."""

from __future__ import annotations

import asyncio

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from folkmoot.core import errors as e
from folkmoot.core.closecodes import CloseCode
from folkmoot.transports.websocket import Handler, Refusal, UpgradeRequest, WebSocketConnection
from tests.harness import run
from tests.transports.websocket.support import Guest, Party, opened


async def code_of(connection: ClientConnection) -> int | None:
    """The close code, once the connection has ended."""
    try:
        while True:
            await connection.recv()
    except ConnectionClosed as end:
        return end.rcvd.code if end.rcvd else None


def test_what_one_says_all_hear_and_the_speaker_too() -> None:
    async def main() -> None:
        async with opened() as at, connect(at.url) as ann, connect(at.url) as bob:
            await at.party.number(2)
            await ann.send("hello, Bøb")
            assert await bob.recv() == await ann.recv() == "hello, Bøb"

    run(main())


@pytest.mark.parametrize("size", [0, 1, 125, 126, 65_535, 65_536, 1_048_576])
def test_a_message_of_any_allowed_size_comes_back_whole(size: int) -> None:
    async def main() -> None:
        async with opened() as at, connect(at.url, max_size=None, compression=None) as ann:
            await ann.send("x" * size)
            assert await ann.recv() == "x" * size
            await ann.send("and on")
            assert await ann.recv() == "and on"

    run(main())


def test_a_message_one_byte_over_the_limit_is_closed_as_too_big() -> None:
    async def main() -> int | None:
        async with opened() as at, connect(at.url, max_size=None, compression=None) as ann:
            await ann.send("x" * 1_048_577)
            return await code_of(ann)

    assert run(main()) == CloseCode.TOO_BIG


def test_fragments_are_put_together() -> None:
    async def main() -> None:
        async with opened() as at, connect(at.url) as ann:
            await ann.send(["one ", "two ", "", "three"])
            assert await ann.recv() == "one two three"

    run(main())


def test_a_binary_message_is_refused() -> None:
    async def main() -> int | None:
        async with opened() as at, connect(at.url) as ann:
            await ann.send(b"bytes")
            return await code_of(ann)

    assert run(main()) == CloseCode.NOT_TEXT


def test_a_close_is_answered_with_its_code() -> None:
    async def main() -> Guest:
        async with opened() as at:
            async with connect(at.url) as ann:
                await ann.close(4321, "done")
                assert (ann.close_code, ann.close_reason) == (4321, "done")
            await at.party.guests[0].left.wait()
            assert len(at.party.audience) == 0
            return at.party.guests[0]

    assert run(main()).ends == [(4321, "done")]


def test_the_hub_closes_with_code_and_reason_after_what_it_said() -> None:
    async def main() -> None:
        async with opened() as at, connect(at.url) as ann:
            await at.party.number(1)
            guest = at.party.guests[0]
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

    run(main())


def test_a_refusal_reaches_the_client_as_a_close_code() -> None:
    class Closed(Party):
        async def accept(self, request: UpgradeRequest) -> Refusal:
            assert request.query == {"room": ["den"], "token": [""]}
            return Refusal(CloseCode.NOT_AUTHENTICATED, "No valid token was given.")

    async def main() -> None:
        async with opened(party=Closed()) as at:
            async with connect(f"{at.url}?room=den&token=") as ann:
                with pytest.raises(ConnectionClosed) as closed:
                    await ann.recv()
            assert closed.value.rcvd
            assert closed.value.rcvd.code == 4401
            assert closed.value.rcvd.reason == "No valid token was given."

    run(main())


def test_an_error_at_the_door_is_an_http_status() -> None:
    class Absent(Party):
        async def accept(self, request: UpgradeRequest) -> Refusal:
            raise e.NotFound("There is nothing at this address.")

    async def main() -> int:
        async with opened(party=Absent()) as at:
            with pytest.raises(InvalidStatus) as refused:
                await connect(at.url)
            assert at.endpoint.open_links == 0
            return refused.value.response.status_code

    assert run(main()) == 404


def test_an_error_in_a_message_closes_its_own_link_alone(caplog: pytest.LogCaptureFixture) -> None:
    class Failing(Guest):
        def on_text(self, *messages: bytes) -> None:
            if b"fail" in messages:
                raise LookupError("secret")
            super().on_text(*messages)

    class Fragile(Party):
        def enter(self, link: WebSocketConnection) -> Handler:  # type: ignore[override]
            super().enter(link)
            return Failing(self, link)

    async def main() -> int | None:
        async with opened(party=Fragile()) as at, connect(at.url) as ann, connect(at.url) as bob:
            await ann.send("fail")
            code = await code_of(ann)
            await bob.send("still here")
            assert await bob.recv() == "still here"
            return code

    assert run(main()) == CloseCode.INTERNAL
    assert [record.message for record in caplog.records if record.levelname == "ERROR"] == [
        "a link failed"
    ]


def test_an_error_while_someone_enters_closes_the_link(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(Party):
        def enter(self, link: WebSocketConnection) -> Guest:
            raise LookupError("broken")

    async def main() -> int | None:
        async with opened(party=Broken()) as at, connect(at.url) as ann:
            return await code_of(ann)

    assert run(main()) == CloseCode.INTERNAL
    assert "a link failed" in caplog.text


def test_a_stopping_hub_says_so_and_waits_for_the_answer() -> None:
    async def main() -> list[int | None]:
        async with opened() as at:
            guests = [await connect(at.url) for _ in range(5)]
            await at.party.number(5)
            ends = [asyncio.create_task(code_of(each)) for each in guests]
            at.party.guests[0].on_text(b"said before")
        return [await end for end in ends]

    assert run(main()) == [CloseCode.RESTARTING] * 5
