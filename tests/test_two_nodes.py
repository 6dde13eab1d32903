"""Two hubs on one PostgreSQL and one NATS: what one changes holds in the other soon.

Each is tried with NATS, and without it: then the other node reads of the change in the store.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest

from folkmoot.app import Hub
from folkmoot.core import errors as e
from folkmoot.core.events import OF_ONE_NODE
from folkmoot.gateway.model import Inventory
from folkmoot.rooms.spec import read_patch
from tests import nats, postgres
from tests.gateway.scripted import Scripted
from tests.gateway.scripted import tool as definition
from tests.harness import Answer, ask
from tests.interaction.room_client import ROOM, Closed, joined
from tests.mcp_harness import settings
from tests.nats import NatsProcess
from tests.store.test_changes import Unreachable
from tests.test_two_hubs import KEY, NOT_AUTHENTICATED, Pair, port
from tests.transports.events.support import following
from tests.transports.rest.support import Asker

pytestmark = [*postgres.NEEDED, *nats.NEEDED]

WAYS = pytest.mark.parametrize("cut", [False, True], ids=["nats", "without-nats"])
WAIT_SECONDS = 60.0


@asynccontextmanager
async def two_nodes(folder: Path, *, cut: bool = False) -> AsyncIterator[Pair]:
    """Two hubs, each with a store and a bus of its own; NATS is gone once they run, if `cut`."""
    async with several_nodes(folder, ("one", "two"), cut=cut) as found:
        yield Pair(*found)


@asynccontextmanager
async def several_nodes(
    folder: Path, names: Sequence[str], *, cut: bool = False
) -> AsyncIterator[list[Hub]]:
    """As many hubs as there are names."""
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


async def soon(holds: Callable[[], Awaitable[bool]]) -> None:
    """Wait until something holds in the other node."""
    async with asyncio.timeout(WAIT_SECONDS):
        while not await holds():  # noqa: ASYNC110 - the other node does not tell
            await asyncio.sleep(0.05)


def payload(answer: Answer) -> Any:
    """What a tool answered."""
    return json.loads(answer.json()["result"]["content"][0]["text"])


async def status(hubs: Pair, token: str) -> int:
    return (await hubs.call(hubs.second, token, "msg/whoami")).status


@WAYS
async def test_a_token_that_one_node_revokes_opens_nothing_in_the_other(
    tmp_path: Path, cut: bool
) -> None:
    async with two_nodes(tmp_path, cut=cut) as hubs:
        ann = await hubs.first.accounts.register("ann")
        made = await hubs.first.accounts.authentication.create(ann.account, "phone")
        await hubs.call(hubs.second, ann.token, "room/create", name=ROOM)
        async with (
            following(Asker(port(hubs.second), made.token)) as source,
            joined(port(hubs.second), made.token) as seat,
        ):
            assert await status(hubs, made.token) == 200
            await hubs.first.accounts.authentication.revoke(ann.account, made.credential.id)

            async def refused() -> bool:
                return await status(hubs, made.token) == 401

            await soon(refused)
            with pytest.raises(Closed) as end:
                await seat.kind("never")
            assert end.value.code == NOT_AUTHENTICATED
            while not await source.ended():
                pass
            assert await status(hubs, ann.token) == 200


@WAYS
async def test_whoever_one_node_suspends_is_refused_by_the_other(tmp_path: Path, cut: bool) -> None:
    async with two_nodes(tmp_path, cut=cut) as hubs:
        ann = await hubs.first.accounts.register("ann")
        await hubs.call(hubs.second, ann.token, "room/create", name=ROOM)
        async with joined(port(hubs.second), ann.token) as seat:
            await hubs.first.accounts.suspend(ann.account, suspended=True)
            with pytest.raises(Closed) as end:
                await seat.kind("never")
            assert end.value.code == NOT_AUTHENTICATED
            assert await status(hubs, ann.token) == 401
        await hubs.first.accounts.suspend(ann.account, suspended=False)

        async def welcome() -> bool:
            return await status(hubs, ann.token) == 200

        await soon(welcome)


@WAYS
async def test_what_one_node_grants_and_revokes_holds_in_the_other(
    tmp_path: Path, cut: bool
) -> None:
    async with two_nodes(tmp_path, cut=cut) as hubs:
        ann = await hubs.first.accounts.register("ann")

        async def says() -> str:
            told = (await hubs.call(hubs.second, ann.token, "msg/threads")).json()
            return str(json.loads(told["result"]["content"][0]["text"]).get("code"))

        async def denied() -> bool:
            return await says() == "capability_denied"

        async def allowed() -> bool:
            return await says() == "None"

        assert await allowed()
        deny = {"handle": "ann", "patterns": ["!mcp.request.tools/call:msg/threads"]}
        await hubs.operate("folkmoot/grant", **deny)
        await soon(denied)
        await hubs.operate("folkmoot/revoke", **deny)
        await soon(allowed)


@WAYS
async def test_a_handle_that_one_node_changes_is_the_handle_in_the_other(
    tmp_path: Path, cut: bool
) -> None:
    async with two_nodes(tmp_path, cut=cut) as hubs:
        ann = await hubs.first.accounts.register("ann")
        assert b"ann" in (await hubs.call(hubs.second, ann.token, "msg/whoami")).body
        await hubs.first.accounts.change_handle(ann.account, "anna_b")

        async def renamed() -> bool:
            return b"anna_b" in (await hubs.call(hubs.second, ann.token, "msg/whoami")).body

        await soon(renamed)


async def test_a_room_that_its_owner_changes_or_removes_is_so_in_the_other(tmp_path: Path) -> None:
    async with two_nodes(tmp_path) as hubs:
        ann = await hubs.first.accounts.register("ann")
        await hubs.call(hubs.first, ann.token, "room/create", name=ROOM)
        owner = await hubs.first.rooms.authenticate(ann.token)
        async with (
            joined(port(hubs.first), ann.token),
            joined(port(hubs.second), ann.token) as seat,
        ):
            patch = read_patch({"capabilities": ["chat.*"]})
            await hubs.first.rooms.change(owner, ROOM, patch)
            assert (await hubs.second.rooms.get(owner, ROOM)).capabilities == ["chat.*"]
            await hubs.first.rooms.delete(owner, ROOM)
            with pytest.raises(Closed):
                await seat.kind("never")
        with pytest.raises(e.RoomNotFound):
            await hubs.second.rooms.get(owner, ROOM)


async def test_a_room_is_changed_at_a_node_that_does_not_own_it(tmp_path: Path) -> None:
    async with two_nodes(tmp_path) as hubs:
        ann = await hubs.first.accounts.register("ann")
        await hubs.call(hubs.second, ann.token, "room/create", name=ROOM)
        owner = await hubs.first.rooms.authenticate(ann.token)
        async with joined(port(hubs.second), ann.token):
            patch = read_patch({"capabilities": ["chat.*"]})
            await hubs.first.rooms.change(owner, ROOM, patch)
        for hub in hubs:
            assert (await hub.rooms.get(owner, ROOM)).capabilities == ["chat.*"]


@WAYS
async def test_a_tool_that_changed_is_held_back_by_both_until_one_accepts_it(
    tmp_path: Path, cut: bool
) -> None:
    async with two_nodes(tmp_path, cut=cut) as hubs:
        gateways = [hub.behind.gateway for hub in hubs]
        old, new = (
            Inventory(tools=(definition("read", description=text),)) for text in ("old", "new")
        )
        for gateway in gateways:
            gateway.attach(Scripted("files"))
        # The second sees the tool for the first time when it has changed already.
        await gateways[0].arrived("files", old)
        await gateways[1].arrived("files", new)
        assert len(gateways[0].catalogue.rows("tools")) == 1
        assert len(gateways[1].catalogue.rows("tools")) == 0
        await gateways[0].arrived("files", new)
        assert await gateways[0].accept("files") == ["files:read"]

        async def offered() -> bool:
            return len(gateways[1].catalogue.rows("tools")) == 1

        await soon(offered)
        assert await gateways[1].pins.diff() == []


async def test_of_two_nodes_that_see_a_server_first_at_once_one_pins(tmp_path: Path) -> None:
    async with two_nodes(tmp_path) as hubs:
        gateways = [hub.behind.gateway for hub in hubs]
        seen = [Inventory(tools=(definition("read", description=text),)) for text in ("one", "two")]
        for gateway in gateways:
            gateway.attach(Scripted("files"))
        await asyncio.gather(
            *(
                gateway.arrived("files", inventory)
                for gateway, inventory in zip(gateways, seen, strict=True)
            )
        )
        offered = [len(gateway.catalogue.rows("tools")) for gateway in gateways]
        assert sorted(offered) == [0, 1]
        assert len(await gateways[0].pins.diff()) == 1


async def test_people_at_different_nodes_are_in_one_room(tmp_path: Path) -> None:
    async with two_nodes(tmp_path) as hubs:
        ann = await hubs.first.accounts.register("ann")
        bob = await hubs.first.accounts.register("bob")
        await hubs.call(hubs.first, ann.token, "room/create", name=ROOM)
        async with (
            joined(port(hubs.first), ann.token) as here,
            joined(port(hubs.second), bob.token) as there,
        ):
            for hub, token, seat in (
                (hubs.first, ann.token, there),
                (hubs.second, bob.token, here),
            ):
                await hubs.call(hub, token, "room/say", room=ROOM, text="here I am")
                await seat.kind("mcp.notification.notifications/chat/message")


async def test_whoever_is_put_out_at_one_node_is_out_at_the_other(tmp_path: Path) -> None:
    async with two_nodes(tmp_path) as hubs:
        ann = await hubs.first.accounts.register("ann")
        bob = await hubs.first.accounts.register("bob")
        await hubs.call(hubs.first, ann.token, "room/create", name=ROOM)
        async with (
            joined(port(hubs.first), ann.token),
            joined(port(hubs.second), bob.token) as there,
        ):
            path = f"/v1/rooms/{ROOM}/participants/bob"
            signed = {"authorization": f"Bearer {ann.token}"}
            done = await ask(port(hubs.first), path, method="DELETE", headers=signed)
            assert done.status == 200
            with pytest.raises(Closed):
                await there.kind("never")

        async def out() -> bool:
            told = await hubs.call(hubs.second, bob.token, "room/say", room=ROOM, text="hm")
            return b'"isError":true' in told.body

        await soon(out)


async def test_whoever_is_in_a_room_through_tools_is_there_once_whichever_node_they_ask(
    tmp_path: Path,
) -> None:
    async with two_nodes(tmp_path) as hubs:
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


@pytest.mark.parametrize("durable", [True, False])
async def test_whoever_waits_at_another_node_for_news_of_a_room_is_told_nothing_old(
    tmp_path: Path, durable: bool
) -> None:
    async with two_nodes(tmp_path) as hubs:
        ann = await hubs.first.accounts.register("ann")
        await hubs.call(hubs.first, ann.token, "room/create", name=ROOM, durable=durable)
        await hubs.call(hubs.second, ann.token, "room/read", room=ROOM)
        for text in ("one", "two"):
            await hubs.call(hubs.first, ann.token, "room/say", room=ROOM, text=text)
        waiting = hubs.call(hubs.second, ann.token, "room/read", room=ROOM, wait=1)
        assert payload(await waiting)["messages"] == []


@WAYS
async def test_whoever_waits_at_one_node_hears_of_mail_that_was_sent_at_the_other(
    tmp_path: Path, cut: bool
) -> None:
    async with two_nodes(tmp_path, cut=cut) as hubs:
        ann = await hubs.first.accounts.register("ann")
        bob = await hubs.first.accounts.register("bob")
        waiting = asyncio.ensure_future(hubs.call(hubs.second, ann.token, "msg/inbox", wait=50))
        await asyncio.sleep(0.2)
        await hubs.call(hubs.first, bob.token, "msg/send", to="ann", body="hush")
        async with asyncio.timeout(40):
            assert b"hush" in (await waiting).body


async def test_a_node_that_hears_of_no_change_asks_the_store_for_every_token(
    tmp_path: Path,
) -> None:
    async with two_nodes(tmp_path, cut=True) as hubs:
        ann = await hubs.first.accounts.register("ann")
        made = await hubs.first.accounts.authentication.create(ann.account, "phone")
        assert await status(hubs, made.token) == 200
        hubs.second.store._log._pool = Unreachable()  # type: ignore[attr-defined]
        await hubs.first.accounts.authentication.revoke(ann.account, made.credential.id)

        async def refused() -> bool:
            return await status(hubs, made.token) == 401

        await soon(refused)


async def test_a_node_that_hears_of_no_change_asks_the_store_for_every_right(
    tmp_path: Path,
) -> None:
    async with two_nodes(tmp_path, cut=True) as hubs:
        ann = await hubs.first.accounts.register("ann")

        async def denied() -> bool:
            told = await hubs.call(hubs.second, ann.token, "msg/threads")
            return b"capability_denied" in told.body

        assert not await denied()
        hubs.second.store._log._pool = Unreachable()  # type: ignore[attr-defined]
        patterns = ["!mcp.request.tools/call:msg/threads"]
        await hubs.operate("folkmoot/grant", handle="ann", patterns=patterns)
        await soon(denied)
        await hubs.operate("folkmoot/revoke", handle="ann", patterns=patterns)

        async def allowed() -> bool:
            return not await denied()

        await soon(allowed)


async def test_whoever_follows_events_reads_again_while_nats_is_gone(tmp_path: Path) -> None:
    async with two_nodes(tmp_path, cut=True) as hubs:
        ann = await hubs.first.accounts.register("ann")
        async with following(Asker(port(hubs.second), ann.token)) as source:
            while await source.event() != ("reload", {"reason": "gap"}):
                pass
