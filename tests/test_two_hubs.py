"""Two hubs on one database: what one changes holds in the other.

They share a store and a bus in one process, where it holds at once; or they are nodes on one
PostgreSQL, which hear of it through NATS, or read of it in the store where NATS is gone.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest

from folkmoot.app import Hub
from folkmoot.bus import MemoryBus
from folkmoot.cli.operator import ask_socket
from folkmoot.core import errors as e
from folkmoot.core.events import OF_ONE_NODE
from folkmoot.gateway.model import Inventory
from folkmoot.rooms.spec import read_patch
from folkmoot.store import SqliteStore
from tests import nats, postgres
from tests.gateway.scripted import Scripted
from tests.gateway.scripted import tool as definition
from tests.harness import Answer, ask, reached
from tests.interaction.room_client import ROOM, Closed, joined
from tests.mcp_harness import modern, settings
from tests.nats import NatsProcess
from tests.store.test_changes import Unreachable
from tests.transports.events.support import following
from tests.transports.rest.support import Asker

KEY = "ab" * 32
NOT_AUTHENTICATED, NO_SUCH_ROOM, LOADED_AGAIN = 4401, 4404, 1011
WAIT_SECONDS = 60.0
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
DENY = {"handle": "ann", "patterns": ["!mcp.request.tools/call:msg/threads"]}


class Pair:
    """Two hubs: what is done in the first must hold in the second."""

    def __init__(self, first: Hub, second: Hub, *, at_once: bool = False) -> None:
        self.first = first
        self.second = second
        self._at_once = at_once

    def __iter__(self) -> Iterator[Hub]:
        return iter((self.first, self.second))

    async def call(self, hub: Hub, token: str, tool: str, /, **arguments: Any) -> Answer:
        message, headers = modern("tools/call", name=tool, arguments=arguments)
        headers |= {
            "authorization": f"Bearer {token}",
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
        }
        body = json.dumps(message).encode()
        return await ask(port(hub), "/mcp", method="POST", headers=headers, body=body)

    async def operate(self, name: str, /, **arguments: Any) -> Any:
        """What the operator of the first hub asks."""
        socket = self.first.settings.data_folder / "control.sock"
        return await asyncio.to_thread(ask_socket, socket, name, arguments)

    async def soon(self, holds: Callable[[], Awaitable[bool]]) -> None:
        """Have something hold in the second hub: at once, or soon where it is another node."""
        if self._at_once:
            assert await holds()
        else:
            await soon(holds)

    async def status(self, token: str) -> int:
        """How the second hub answers whoever has a token."""
        return (await self.call(self.second, token, "msg/whoami")).status

    async def refuses(self, token: str) -> None:
        """Have the second hub refuse a token."""

        async def refused() -> bool:
            return await self.status(token) == 401

        await self.soon(refused)

    async def denies(self, token: str, *, denied: bool = True) -> None:
        """Have the second hub deny or allow what `DENY` takes away."""

        async def judged() -> bool:
            told = payload(await self.call(self.second, token, "msg/threads"))
            return told.get("code") == ("capability_denied" if denied else None)

        await self.soon(judged)


def port(hub: Hub) -> int:
    return int(hub.base_url.rpartition(":")[2])


def payload(answer: Answer) -> Any:
    """What a tool answered."""
    return json.loads(answer.json()["result"]["content"][0]["text"])


async def soon(holds: Callable[[], Awaitable[bool]]) -> None:
    """Wait until something holds in the other node."""
    async with asyncio.timeout(WAIT_SECONDS):
        while not await holds():  # noqa: ASYNC110 - the other node does not tell
            await asyncio.sleep(0.05)


async def close_code(seat: Any) -> int:
    """How a connection to a room ends."""
    with pytest.raises(Closed) as end:
        await seat.kind("never")
    return int(end.value.code)


@asynccontextmanager
async def on_one_store(folder: Path) -> AsyncIterator[Pair]:
    bus = MemoryBus()
    store = await SqliteStore.open(folder / "shared.db", bus=bus)

    def hub(name: str) -> Hub:
        return Hub(settings(folder / name, master_key=KEY), store=store, bus=bus)

    try:
        async with hub("one").running() as first, hub("two").running() as second:
            yield Pair(first, second, at_once=True)
    finally:
        await bus.close()
        await store.close()


@asynccontextmanager
async def several_nodes(
    folder: Path, names: Sequence[str] = ("one", "two"), *, cut: bool = False
) -> AsyncIterator[list[Hub]]:
    """A hub for each name, with a store and a bus of its own; NATS goes once they run, if `cut`."""
    from folkmoot.bus.nats import NatsBus
    from folkmoot.bus.nats_client import parse_servers

    server, url = NatsProcess(), await postgres.schema_of(folder)

    @asynccontextmanager
    async def hub(name: str) -> AsyncIterator[Hub]:
        bus = NatsBus(parse_servers(server.url), local=OF_ONE_NODE)
        try:
            # No test waits for the end of a lease.
            cluster = {"lease_seconds": 20}
            given = settings(folder / name, master_key=KEY, store={"url": url}, cluster=cluster)
            async with Hub(given, bus=bus).running() as running:
                yield running
        finally:
            await bus.close()

    with closing(server):
        async with AsyncExitStack() as stack:
            found = [await stack.enter_async_context(hub(name)) for name in names]
            if cut:
                server.kill()
            yield found


@pytest.fixture
async def hubs(tmp_path: Path, way: str) -> AsyncIterator[Pair]:
    """Two hubs that share what `way` says."""
    if way == "one-store":
        async with on_one_store(tmp_path) as pair:
            yield pair
    else:
        async with several_nodes(tmp_path, cut=way == "without-nats") as found:
            yield Pair(*found)


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
        await hubs.refuses(made.token)
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
        await hubs.refuses(ann.token)
        assert await close_code(seat) == NOT_AUTHENTICATED
    await hubs.first.accounts.suspend(ann.account, suspended=False)

    async def welcome() -> bool:
        return await hubs.status(ann.token) == 200

    await hubs.soon(welcome)


@ALL_WAYS
@pytest.mark.requirement("events.hold-everywhere")
async def test_what_one_hub_grants_and_revokes_holds_in_the_other(hubs):
    ann = await hubs.first.accounts.register("ann")
    await hubs.denies(ann.token, denied=False)
    await hubs.operate("folkmoot/grant", **DENY)
    await hubs.denies(ann.token)
    await hubs.operate("folkmoot/revoke", **DENY)
    await hubs.denies(ann.token, denied=False)


@ALL_WAYS
@pytest.mark.requirement("events.hold-everywhere")
async def test_a_changed_handle_is_the_handle_in_the_other_hub(hubs):
    ann = await hubs.first.accounts.register("ann")
    assert b"ann" in (await hubs.call(hubs.second, ann.token, "msg/whoami")).body
    await hubs.first.accounts.change_handle(ann.account, "anna_b")

    async def renamed() -> bool:
        return b"anna_b" in (await hubs.call(hubs.second, ann.token, "msg/whoami")).body

    await hubs.soon(renamed)


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

    async def offered() -> bool:
        return len(gateways[1].catalogue.rows("tools")) == 1

    await soon(offered)
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
            tools = (definition("read", description=text),)
            await gateway.arrived("files", Inventory(tools=tools))
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
    async with joined(port(hubs.first), ann.token), joined(port(hubs.second), ann.token) as seat:
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
    ann = await hubs.first.accounts.register("ann")
    bob = await hubs.first.accounts.register("bob")
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
        done = await ask(port(hubs.first), path, method="DELETE", headers=signed)
        assert done.status == 200
        await close_code(there)

    async def out() -> bool:
        told = await hubs.call(hubs.second, bob.token, "room/say", **say)
        return b'"isError":true' in told.body

    await soon(out)


@NODES
async def test_whoever_is_in_a_room_through_tools_is_there_once_whichever_node_they_ask(hubs):
    ann = await hubs.first.accounts.register("ann")
    bob = await hubs.first.accounts.register("bob")
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
    ann = await hubs.first.accounts.register("ann")
    bob = await hubs.first.accounts.register("bob")
    waiting = asyncio.ensure_future(hubs.call(hubs.second, ann.token, "msg/inbox", wait=50))
    await asyncio.sleep(0.2)
    await hubs.call(hubs.first, bob.token, "msg/send", to="ann", body="hush")
    async with asyncio.timeout(40):
        assert b"hush" in (await waiting).body


@ONE_STORE
@pytest.mark.requirement("events.hold-everywhere")
async def test_what_happens_in_one_hub_is_followed_in_the_other(hubs):
    ann = await hubs.first.accounts.register("ann")
    bob = await hubs.first.accounts.register("bob")
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
    await hubs.denies(ann.token, denied=False)
    hubs.second.store._log.connected = Unreachable()  # type: ignore[attr-defined]
    await hubs.first.accounts.authentication.revoke(ann.account, made.credential.id)
    await hubs.refuses(made.token)
    await hubs.operate("folkmoot/grant", **DENY)
    await hubs.denies(ann.token)
    await hubs.operate("folkmoot/revoke", **DENY)
    await hubs.denies(ann.token, denied=False)


@NODES_CUT_OFF
async def test_whoever_follows_events_reads_again_while_nats_is_gone(hubs):
    ann = await hubs.first.accounts.register("ann")
    async with following(Asker(port(hubs.second), ann.token)) as source:
        while await source.event() != ("reload", {"reason": "gap"}):
            pass
