"""Two hubs on one database: what one changes holds in the other.

They share a store and a bus in one process, where it holds at once; or they are nodes on one
PostgreSQL, which hear of it through NATS, or read of it in the store where NATS is gone.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest

from folkmoot.app import Hub
from folkmoot.bus import MemoryBus
from folkmoot.core import errors as e
from folkmoot.gateway.model import Inventory
from folkmoot.rooms.spec import read_patch
from folkmoot.store import SqliteStore
from tests import nats, postgres
from tests.faults.backends import operator
from tests.gateway.scripted import Scripted
from tests.gateway.scripted import tool as definition
from tests.harness import Answer, ask, reached
from tests.interaction.room_client import ROOM, Closed, joined
from tests.mcp_harness import call_tool, payload, settings, until
from tests.nats import NatsProcess
from tests.nodes import KEY, port, several
from tests.store.test_changes import Unreachable
from tests.transports.events.support import following
from tests.transports.rest.support import Asker

NOT_AUTHENTICATED, NO_SUCH_ROOM, LOADED_AGAIN = 4401, 4404, 1011
WAYS = pytest.mark.parametrize("cut", [False, True], ids=["nats", "without-nats"])

NEEDED = [*postgres.NEEDED, *nats.NEEDED]
WITH_NATS = pytest.param("nats", marks=NEEDED)
WITHOUT_NATS = pytest.param("without-nats", marks=NEEDED)
ALL_WAYS = pytest.mark.parametrize("way", ["one-store", WITH_NATS, WITHOUT_NATS])
ONE_STORE = pytest.mark.parametrize("way", ["one-store"])
NODES = pytest.mark.parametrize("way", [WITH_NATS])
NODES_BOTH_WAYS = pytest.mark.parametrize("way", [WITH_NATS, WITHOUT_NATS])
NODES_CUT_OFF = pytest.mark.parametrize("way", [WITHOUT_NATS])

SAID = "mcp.notification.notifications/chat/message"
DENIED = "capability_denied"
DENY = {"handle": "ann", "patterns": ["!mcp.request.tools/call:msg/threads"]}


class Pair:
    """Two hubs: what is done in the first must hold in the second."""

    def __init__(self, first: Hub, second: Hub, *, at_once: bool = False) -> None:
        self.first = first
        self.second = second
        self._at_once = at_once

    def __iter__(self) -> Iterator[Hub]:
        return iter((self.first, self.second))

    async def people(self, *handles: str) -> list[Any]:
        """New accounts, at the first hub."""
        return [await self.first.accounts.register(handle) for handle in handles]

    async def call(self, hub: Hub, token: str, tool: str, /, **arguments: Any) -> Answer:
        return await call_tool(port(hub), token, tool, **arguments)

    async def soon(self, ask: Callable[[], Any], wanted: Any) -> None:
        """Have the second hub answer so: at once, or soon where it is another node."""
        if self._at_once:
            assert await ask() == wanted
        else:
            await until(ask, wanted)

    async def status(self, token: str) -> int:
        """How the second hub answers whoever has a token."""
        return (await self.call(self.second, token, "msg/whoami")).status

    async def verdict(self, token: str) -> str:
        """By which code the second hub denies what `DENY` takes away."""
        return payload(await self.call(self.second, token, "msg/threads")).get("code", "")


async def close_code(seat: Any) -> int:
    """How a connection to a room ends."""
    with pytest.raises(Closed) as end:
        await seat.kind("never")
    return int(end.value.code)


@asynccontextmanager
async def several_nodes(
    folder: Path, count: int = 2, *, cut: bool = False
) -> AsyncIterator[list[Hub]]:
    """Nodes with a NATS of their own, which goes once they run, if `cut`."""
    with closing(NatsProcess()) as server:
        async with several(folder, count, bus=server.url, lease_seconds=20) as found:
            if cut:
                server.kill()
            yield found


@pytest.fixture
async def hubs(tmp_path: Path, way: str) -> AsyncIterator[Pair]:
    """Two hubs that share what `way` says."""
    if way != "one-store":
        async with several_nodes(tmp_path, cut=way == "without-nats") as found:
            yield Pair(*found)
        return
    store = await SqliteStore.open(tmp_path / "shared.db", bus=MemoryBus())
    one, two = (
        Hub(settings(tmp_path / name, master_key=KEY), store=store, bus=store.bus)
        for name in ("one", "two")
    )
    async with one.running() as first, two.running() as second:
        yield Pair(first, second, at_once=True)
    await store.bus.close()
    await store.close()


async def test_a_hub_listens_on_the_bus_of_its_store_and_on_no_other(tmp_path):
    store = await SqliteStore.open(tmp_path / "shared.db")
    try:
        with pytest.raises(ValueError, match="bus that its store publishes on"):
            Hub(settings(tmp_path), store=store, bus=MemoryBus())
    finally:
        await store.close()


@ONE_STORE
@pytest.mark.requirement("events.hold-everywhere")
async def test_a_recovered_accounts_old_token_ends_in_the_other_hub_with_all_it_has_open(hubs):
    ann = await hubs.first.accounts.register("ann")
    await hubs.call(hubs.second, ann.token, "room/create", name=ROOM)
    async with joined(port(hubs.second), ann.token) as seat:
        waiting = asyncio.ensure_future(hubs.call(hubs.second, ann.token, "msg/inbox", wait=50))
        await reached(lambda: len(hubs.second.mcp._exchanges) == 1)
        back = await hubs.first.accounts.recover("ann", ann.recovery_code)
        assert (await hubs.status(ann.token), await hubs.status(back.token)) == (401, 200)
        assert await close_code(seat) == NOT_AUTHENTICATED
        assert b"token" in (await waiting).body


@ALL_WAYS
@pytest.mark.requirement("events.hold-everywhere", "credentials.revoked-at-once")
async def test_a_token_that_one_hub_revokes_opens_nothing_in_the_other(hubs):
    ann = await hubs.first.accounts.register("ann")
    made = await hubs.first.accounts.authentication.create(ann.account, "phone")
    await hubs.call(hubs.second, ann.token, "room/create", name=ROOM)
    async with (
        following(Asker(port(hubs.second), made.token)) as source,
        joined(port(hubs.second), ann.token) as kept,
        joined(port(hubs.second), made.token) as seat,
    ):
        assert await hubs.status(made.token) == 200
        await hubs.first.accounts.authentication.revoke(ann.account, made.credential.id)
        await hubs.soon(lambda: hubs.status(made.token), 401)
        assert await close_code(seat) == NOT_AUTHENTICATED
        while not await source.ended():
            pass
        assert await hubs.status(ann.token) == 200
        await hubs.call(hubs.second, ann.token, "room/say", room=ROOM, text="here")
        await kept.kind(SAID)


@ALL_WAYS
@pytest.mark.requirement("events.hold-everywhere")
async def test_whoever_is_suspended_by_one_hub_is_refused_by_the_other(hubs):
    ann = await hubs.first.accounts.register("ann")
    await hubs.call(hubs.second, ann.token, "room/create", name=ROOM)
    async with joined(port(hubs.second), ann.token) as seat:
        await hubs.first.accounts.suspend(ann.account, suspended=True)
        await hubs.soon(lambda: hubs.status(ann.token), 401)
        assert await close_code(seat) == NOT_AUTHENTICATED
    await hubs.first.accounts.suspend(ann.account, suspended=False)
    await hubs.soon(lambda: hubs.status(ann.token), 200)


@ALL_WAYS
@pytest.mark.requirement("events.hold-everywhere")
async def test_what_one_hub_grants_and_revokes_holds_in_the_other(hubs):
    ann = await hubs.first.accounts.register("ann")
    await hubs.soon(lambda: hubs.verdict(ann.token), "")
    await operator(hubs.first, "folkmoot/grant", **DENY)
    await hubs.soon(lambda: hubs.verdict(ann.token), DENIED)
    await operator(hubs.first, "folkmoot/revoke", **DENY)
    await hubs.soon(lambda: hubs.verdict(ann.token), "")


@ALL_WAYS
@pytest.mark.requirement("events.hold-everywhere")
async def test_a_changed_handle_is_the_handle_in_the_other_hub(hubs):
    ann = await hubs.first.accounts.register("ann")
    assert b"ann" in (await hubs.call(hubs.second, ann.token, "msg/whoami")).body
    await hubs.first.accounts.change_handle(ann.account, "anna_b")

    async def handle() -> str:
        return payload(await hubs.call(hubs.second, ann.token, "msg/whoami"))["handle"]

    await hubs.soon(handle, "anna_b")


@ALL_WAYS
@pytest.mark.requirement("events.hold-everywhere")
async def test_a_tool_that_changed_is_held_back_by_both_until_one_accepts_it(hubs):
    gateways = [hub.behind.gateway for hub in hubs]
    old, new = (Inventory(tools=(definition("read", description=text),)) for text in "ab")
    for gateway in gateways:
        gateway.attach(Scripted("files"))
    # The second sees the tool for the first time when it has changed already.
    await gateways[0].arrived("files", old)
    await gateways[1].arrived("files", new)
    assert [len(gateway.catalogue.rows("tools")) for gateway in gateways] == [1, 0]
    await gateways[0].arrived("files", new)
    assert [len(gateway.catalogue.rows("tools")) for gateway in gateways] == [0, 0]
    assert await gateways[0].accept("files") == ["files:read"]
    await until(lambda: len(gateways[1].catalogue.rows("tools")) == 1)
    assert await gateways[1].pins.diff() == []


@ONE_STORE
@pytest.mark.requirement("events.hold-everywhere")
async def test_a_tool_that_is_accepted_while_the_other_hub_cannot_read_is_offered_there_later(
    hubs, monkeypatch
):
    monkeypatch.setattr("folkmoot.gateway.gateway.PINS_RETRY_SECONDS", 0.0)
    failures = 0
    gateways = [hub.behind.gateway for hub in hubs]
    for gateway in gateways:
        gateway.attach(Scripted("files"))
        for text in ("old", "new"):
            await gateway.arrived("files", Inventory(tools=(definition("read", description=text),)))
    second = gateways[1].pins
    judge = second.judge

    async def fail_twice(*given: Any, **how: Any) -> Any:
        nonlocal failures
        if failures < 2:
            failures += 1
            raise e.DatabaseUnreachable("It is away.")
        return await judge(*given, **how)

    monkeypatch.setattr(second, "judge", fail_twice)
    assert await gateways[0].accept("files") == ["files:read"]
    await reached(lambda: len(gateways[1].catalogue.rows("tools")) == 1)
    assert failures == 2


@NODES
async def test_of_two_nodes_that_see_a_server_first_at_once_one_pins(hubs):
    async def arrives(hub: Hub, description: str) -> None:
        hub.behind.gateway.attach(Scripted("files"))
        seen = Inventory(tools=(definition("read", description=description),))
        await hub.behind.gateway.arrived("files", seen)

    await asyncio.gather(arrives(hubs.first, "one"), arrives(hubs.second, "two"))
    gateways = [hub.behind.gateway for hub in hubs]
    assert sorted(len(gateway.catalogue.rows("tools")) for gateway in gateways) == [0, 1]
    assert len(await gateways[0].pins.diff()) == 1


@ONE_STORE
@pytest.mark.requirement("events.hold-everywhere")
async def test_a_room_that_one_hub_changes_or_removes_is_so_in_the_other(hubs):
    ann = await hubs.first.accounts.register("ann")
    await hubs.call(hubs.first, ann.token, "room/create", name=ROOM)
    owner = await hubs.first.rooms.authenticate(ann.token)
    async with joined(port(hubs.second), ann.token) as seat:
        await hubs.first.rooms.change(owner, ROOM, read_patch({"capabilities": ["chat.*"]}))
        assert await close_code(seat) == LOADED_AGAIN
    assert (await hubs.second.rooms.get(owner, ROOM)).capabilities == ["chat.*"]
    async with joined(port(hubs.second), ann.token) as seat:
        await hubs.first.rooms.delete(owner, ROOM)
        assert await close_code(seat) == NO_SUCH_ROOM


@NODES
async def test_a_room_that_its_owner_changes_or_removes_is_so_at_the_other_node(hubs):
    ann = await hubs.first.accounts.register("ann")
    await hubs.call(hubs.first, ann.token, "room/create", name=ROOM)
    owner = await hubs.first.rooms.authenticate(ann.token)
    async with (
        joined(port(hubs.first), ann.token),
        joined(port(hubs.second), ann.token) as seat,
    ):
        await hubs.first.rooms.change(owner, ROOM, read_patch({"capabilities": ["chat.*"]}))
        assert (await hubs.second.rooms.get(owner, ROOM)).capabilities == ["chat.*"]
        await hubs.first.rooms.delete(owner, ROOM)
        await close_code(seat)
    with pytest.raises(e.RoomNotFound):
        await hubs.second.rooms.get(owner, ROOM)


@NODES
async def test_a_room_is_changed_at_a_node_that_does_not_own_it(hubs):
    ann = await hubs.first.accounts.register("ann")
    await hubs.call(hubs.second, ann.token, "room/create", name=ROOM)
    owner = await hubs.first.rooms.authenticate(ann.token)
    async with joined(port(hubs.second), ann.token):
        await hubs.first.rooms.change(owner, ROOM, read_patch({"capabilities": ["chat.*"]}))
    for hub in hubs:
        assert (await hub.rooms.get(owner, ROOM)).capabilities == ["chat.*"]


@NODES
async def test_people_at_different_nodes_are_in_one_room_until_one_is_put_out(hubs):
    ann, bob = await hubs.people("ann", "bob")
    await hubs.call(hubs.first, ann.token, "room/create", name=ROOM)
    say = {"room": ROOM, "text": "here I am"}
    async with (
        joined(port(hubs.first), ann.token) as here,
        joined(port(hubs.second), bob.token) as there,
    ):
        await hubs.call(hubs.first, ann.token, "room/say", **say)
        await there.kind(SAID)
        await hubs.call(hubs.second, bob.token, "room/say", **say)
        await here.kind(SAID)
        path = f"/v1/rooms/{ROOM}/participants/bob"
        signed = {"authorization": f"Bearer {ann.token}"}
        assert (await ask(port(hubs.first), path, method="DELETE", headers=signed)).status == 200
        await close_code(there)

    async def is_out() -> bool:
        told = await hubs.call(hubs.second, bob.token, "room/say", **say)
        return b'"isError":true' in told.body

    await until(is_out)


@NODES
async def test_whoever_is_in_a_room_through_tools_is_there_once_whichever_node_they_ask(hubs):
    ann, bob = await hubs.people("ann", "bob")
    await hubs.call(hubs.first, ann.token, "room/create", name=ROOM)

    async def heard() -> list[str]:
        call = hubs.call(hubs.first, ann.token, "room/read", room=ROOM, kinds=["presence"])
        found = payload(await call)["messages"]
        return [message["kind"].rpartition(".")[2] for message in found]

    async with joined(port(hubs.first), ann.token):
        for hub in (hubs.second, hubs.first, hubs.second):
            shown = payload(await hubs.call(hub, bob.token, "room/join", room=ROOM))
            assert (shown["last_seq"], shown["participants"]) == (2, 2)
        for hub in hubs:
            listed = payload(await hubs.call(hub, ann.token, "room/list"))["rooms"]
            assert [room["participants"] for room in listed] == [2]
        assert await heard() == ["join", "join"]
        (live,) = hubs.first.rooms._live
        (visit,) = live.visits._visits.values()
        visit.seen_at = 0
        await hubs.call(hubs.second, bob.token, "room/read", room=ROOM)
        await nats.until(lambda: visit.seen_at)
        await hubs.first.rooms._upkeep.round()
        assert await heard() == ["join", "join"]
        await hubs.call(hubs.second, bob.token, "room/leave", room=ROOM)
        assert await heard() == ["join", "join", "leave"]


@NODES
@pytest.mark.parametrize("durable", [True, False])
async def test_whoever_waits_at_another_node_for_news_of_a_room_is_told_nothing_old(hubs, durable):
    ann = await hubs.first.accounts.register("ann")
    await hubs.call(hubs.first, ann.token, "room/create", name=ROOM, durable=durable)
    await hubs.call(hubs.second, ann.token, "room/read", room=ROOM)
    for text in ("one", "two"):
        await hubs.call(hubs.first, ann.token, "room/say", room=ROOM, text=text)
    waiting = hubs.call(hubs.second, ann.token, "room/read", room=ROOM, wait=1)
    assert payload(await waiting)["messages"] == []


@NODES_BOTH_WAYS
async def test_whoever_waits_at_one_node_hears_of_mail_that_was_sent_at_the_other(hubs):
    ann, bob = await hubs.people("ann", "bob")
    waiting = asyncio.ensure_future(hubs.call(hubs.second, ann.token, "msg/inbox", wait=50))
    await asyncio.sleep(0.2)
    await hubs.call(hubs.first, bob.token, "msg/send", to="ann", body="hush")
    async with asyncio.timeout(40):
        assert b"hush" in (await waiting).body


@ONE_STORE
@pytest.mark.requirement("events.hold-everywhere")
async def test_what_happens_in_one_hub_is_followed_in_the_other(hubs):
    ann, bob = await hubs.people("ann", "bob")
    async with following(Asker(port(hubs.second), ann.token)) as source:
        await hubs.call(hubs.first, bob.token, "msg/send", to="ann", body="hush")
        assert (await source.event())[0] == "mail.received"
        await hubs.call(hubs.first, ann.token, "room/create", name=ROOM)
        assert (await source.event())[0] == "room.membership"
        await hubs.call(hubs.first, bob.token, "room/say", room=ROOM, text="hush")
        assert (await source.event())[0] == "room.message"
        await hubs.first.accounts.recover("ann", ann.recovery_code)
        assert await source.ended()


@NODES_CUT_OFF
async def test_a_node_that_hears_of_no_change_asks_the_store_for_every_token_and_right(hubs):
    ann = await hubs.first.accounts.register("ann")
    made = await hubs.first.accounts.authentication.create(ann.account, "phone")
    assert await hubs.status(made.token) == 200
    await hubs.soon(lambda: hubs.verdict(ann.token), "")
    hubs.second.store._log.connected = Unreachable()
    await hubs.first.accounts.authentication.revoke(ann.account, made.credential.id)
    await hubs.soon(lambda: hubs.status(made.token), 401)
    await operator(hubs.first, "folkmoot/grant", **DENY)
    await hubs.soon(lambda: hubs.verdict(ann.token), DENIED)
    await operator(hubs.first, "folkmoot/revoke", **DENY)
    await hubs.soon(lambda: hubs.verdict(ann.token), "")


@NODES_CUT_OFF
async def test_whoever_follows_events_reads_again_while_nats_is_gone(hubs):
    ann = await hubs.first.accounts.register("ann")
    async with following(Asker(port(hubs.second), ann.token)) as source:
        while await source.event() != ("reload", {"reason": "gap"}):
            pass
