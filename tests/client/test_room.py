"""Coming in, what is known there, and leaving."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable

import pytest

from folkmoot.client import (
    AuthenticationRequired,
    HubUnreachable,
    Replaced,
    Room,
    RoomForbidden,
    RoomLeft,
    RoomNotFound,
)
from folkmoot.core import errors as e
from tests.client.support import enter, eventually, until


async def test_one_who_comes_in_knows_who_it_is_and_who_is_there(hub, alice):
    assert (alice.me.id, alice.me.role, alice.me.capabilities) == ("alice", "owner", ("*",))
    assert alice.epoch == "e1"
    async with enter(hub, "bob") as bob:
        assert {*bob.participants} == {"alice", "bob"}
        await until(alice, lambda m: m.kind == "system.presence.join" and m.seq > 1)
        assert alice.participants["bob"].role == "member"
        assert bob.credential is None
    await until(alice, lambda m: m.kind == "system.presence.leave")
    assert {*alice.participants} == {"alice"}


async def test_the_token_travels_in_a_header_and_is_shown_nowhere(hub, caplog):
    with caplog.at_level(1):
        async with enter(hub, "bob") as bob:
            hub.cut()
            await bob.say("hello")
            assert {*hub.tokens} == {"sk_bob"}
            assert "sk_" not in f"{hub.joins} {bob!r} {bob.me!r}"
    ours = [record for record in caplog.records if "websockets" not in record.name]
    assert "sk_bob" not in "".join(record.getMessage() for record in ours)


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (4400, e.QueryInvalid),
        (4401, AuthenticationRequired),
        (4403, RoomForbidden),
        (4404, RoomNotFound),
        (4009, Replaced),
    ],
)
@pytest.mark.parametrize("later", [False, True])
async def test_an_end_that_nothing_can_change_is_raised_with_the_hubs_sentence(
    hub, code, error, later
):
    if not later:
        hub.refuses = (code, "Because.")
        with pytest.raises(error, match=r"Because\."):
            async with enter(hub, "bob"):
                pass
    else:
        async with enter(hub, "bob") as bob:
            hub.refuses = (code, "")
            hub.cut()
            with pytest.raises(error, match=r"^[A-Z].*\.$"):
                async for _ in bob:
                    pass
            with pytest.raises(error):
                await bob.say("hello")
            with pytest.raises(error):
                await bob.run()
    assert len(hub.joins) == 1 + later


async def test_no_hub_at_the_address_is_told_at_once():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(HubUnreachable, match="no hub can be reached there"):
            async with Room(url, room="square", token="sk_secret"):
                pass


async def test_patience_ends_after_its_time(hub):
    async with enter(hub, "bob", patience=0.05) as bob:
        await hub.close()
        with pytest.raises(HubUnreachable):
            await bob.say("hello")
        await hub.open()


async def test_an_error_of_the_author_comes_out_as_it_went_in(hub):
    with pytest.raises(ZeroDivisionError):
        async with enter(hub, "bob"):
            raise ZeroDivisionError
    await eventually(lambda: not hub.clients)


async def test_a_cancelled_author_leaves_the_room(hub):

    async def agent() -> None:
        async with enter(hub, "bob") as bob:
            async for _ in bob:
                pass

    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(agent())
        await eventually(lambda: len(hub.clients) == 1)
        task.cancel()
    await eventually(lambda: not hub.clients)
    assert task.cancelled()


async def test_who_waits_while_coming_in_can_be_cancelled():
    async with asyncio.TaskGroup() as tasks:
        arrived = asyncio.Event()

        async def deaf(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            arrived.set()
            await reader.read()
            writer.close()

        server = await asyncio.start_server(deaf, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with server:
            task = tasks.create_task(Room(url, room="a", token="sk_a").__aenter__())
            await arrived.wait()
            task.cancel()
    assert task.cancelled()


async def test_nothing_can_be_done_before_entering_or_after_leaving(hub):
    bob = enter(hub, "bob")
    with pytest.raises(RoomLeft, match="not entered"):
        await anext(bob)
    assert (bob.last_seq, bob.epoch) == (0, None)
    async with bob:
        await bob.say("hello")
    with pytest.raises(RoomLeft, match="was left"):
        await bob.say("and")
    rest = [message.kind async for message in bob]
    assert rest == ["system.presence.join", "chat.message"]
    with pytest.raises(RuntimeError, match="once"):
        async with bob:
            pass


async def test_whoever_waits_when_the_room_is_left_is_told(hub, alice):
    async with asyncio.TaskGroup() as tasks:
        async with enter(hub, "bob") as bob:
            proposal = await bob.propose("ping")
            outcome = tasks.create_task(left(proposal.outcome()))
            reading = tasks.create_task(collect(bob))
            await asyncio.sleep(0)
        assert await outcome
        assert (await reading)[-1] == "mcp.proposal.ping"


async def left(wait: Awaitable[object]) -> bool:
    with pytest.raises(RoomLeft):
        await wait
    return True


async def collect(room: Room) -> list[str]:
    return [message.kind async for message in room]


NO_HUBS = "127.0.0.1:8420 ftp://a http:// http://a:b@c http://a?b http://[ http://a:x"


@pytest.mark.parametrize("url", ["", *NO_HUBS.split()])
def test_an_address_that_is_no_hubs_is_refused_at_once(url):
    with pytest.raises(ValueError, match="The hub's address"):
        Room(url, room="square", token="sk_secret")


async def test_a_room_with_a_strange_name_is_asked_for_by_it(hub):
    async with Room(hub.url + "/", room="a&b=c d", token="sk_bob"):
        assert hub.joins[0]["room"] == "a&b=c d"
