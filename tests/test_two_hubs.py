"""Two hubs on one store and one bus: what one changes holds in the other at once.

Nothing here waits for a change: each is looked for in the other hub as soon as it was answered.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from folkmoot.app import Hub
from folkmoot.bus import MemoryBus
from folkmoot.cli.operator import ask_socket
from folkmoot.core import errors as e
from folkmoot.gateway.model import Inventory
from folkmoot.rooms.spec import read_patch
from folkmoot.store import SqliteStore
from tests.gateway.scripted import Scripted
from tests.gateway.scripted import tool as definition
from tests.harness import Answer, ask, reached
from tests.interaction.room_client import ROOM, Closed, joined
from tests.mcp_harness import modern, settings
from tests.transports.events.support import following
from tests.transports.rest.support import Asker

KEY = "ab" * 32
NOT_AUTHENTICATED, NO_SUCH_ROOM, LOADED_AGAIN = 4401, 4404, 1011


class Pair(NamedTuple):
    """Two hubs: what is done in the first must hold in the second."""

    first: Hub
    second: Hub

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


def port(hub: Hub) -> int:
    return int(hub.base_url.rpartition(":")[2])


@asynccontextmanager
async def two_hubs(folder: Path) -> AsyncIterator[Pair]:
    bus = MemoryBus()
    store = await SqliteStore.open(folder / "shared.db", bus=bus)

    def hub(name: str) -> Hub:
        return Hub(settings(folder / name, master_key=KEY), store=store, bus=bus)

    try:
        async with hub("one").running() as first, hub("two").running() as second:
            yield Pair(first, second)
    finally:
        await bus.close()
        await store.close()


async def test_a_hub_listens_on_the_bus_of_its_store_and_on_no_other(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path / "shared.db")
    try:
        with pytest.raises(ValueError, match="bus that its store publishes on"):
            Hub(settings(tmp_path), store=store, bus=MemoryBus())
    finally:
        await store.close()


@pytest.mark.requirement("events.hold-everywhere")
async def test_a_recovered_accounts_old_token_ends_in_the_other_hub_with_all_it_has_open(
    tmp_path: Path,
) -> None:
    async with two_hubs(tmp_path) as hubs:
        ann = await hubs.first.accounts.register("ann")
        await hubs.call(hubs.second, ann.token, "room/create", name=ROOM)
        async with joined(port(hubs.second), ann.token) as seat:
            waiting = asyncio.ensure_future(hubs.call(hubs.second, ann.token, "msg/inbox", wait=50))
            await reached(lambda: len(hubs.second.mcp._exchanges) == 1)
            back = await hubs.first.accounts.recover("ann", ann.recovery_code)
            assert (await hubs.call(hubs.second, ann.token, "msg/whoami")).status == 401
            assert (await hubs.call(hubs.second, back.token, "msg/whoami")).status == 200
            with pytest.raises(Closed) as end:
                await seat.kind("never")
            assert end.value.code == NOT_AUTHENTICATED
            assert b"token" in (await waiting).body


@pytest.mark.requirement("events.hold-everywhere", "credentials.revoked-at-once")
async def test_a_token_that_one_hub_revokes_opens_nothing_in_the_other(tmp_path: Path) -> None:
    async with two_hubs(tmp_path) as hubs:
        ann = await hubs.first.accounts.register("ann")
        made = await hubs.first.accounts.authentication.create(ann.account, "phone")
        await hubs.call(hubs.second, ann.token, "room/create", name=ROOM)
        async with (
            joined(port(hubs.second), ann.token) as kept,
            joined(port(hubs.second), made.token) as seat,
        ):
            await hubs.first.accounts.authentication.revoke(ann.account, made.credential.id)
            assert (await hubs.call(hubs.second, made.token, "msg/whoami")).status == 401
            with pytest.raises(Closed) as end:
                await seat.kind("never")
            assert end.value.code == NOT_AUTHENTICATED
            assert (await hubs.call(hubs.second, ann.token, "msg/whoami")).status == 200
            await hubs.call(hubs.second, ann.token, "room/say", room=ROOM, text="here")
            await kept.kind("mcp.notification.notifications/chat/message")


@pytest.mark.requirement("events.hold-everywhere")
async def test_a_room_that_one_hub_changes_or_removes_is_so_in_the_other(tmp_path: Path) -> None:
    async with two_hubs(tmp_path) as hubs:
        ann = await hubs.first.accounts.register("ann")
        await hubs.call(hubs.first, ann.token, "room/create", name=ROOM)
        owner = await hubs.first.rooms.authenticate(ann.token)
        async with joined(port(hubs.second), ann.token) as seat:
            patch = read_patch({"capabilities": ["chat.*"]})
            await hubs.first.rooms.change(owner, ROOM, patch)
            with pytest.raises(Closed) as end:
                await seat.kind("never")
            assert end.value.code == LOADED_AGAIN
        view = await hubs.second.rooms.get(owner, ROOM)
        assert view.capabilities == ["chat.*"]
        async with joined(port(hubs.second), ann.token) as seat:
            await hubs.first.rooms.delete(owner, ROOM)
            with pytest.raises(Closed) as end:
                await seat.kind("never")
            assert end.value.code == NO_SUCH_ROOM


@pytest.mark.requirement("events.hold-everywhere")
async def test_whoever_is_suspended_by_one_hub_is_refused_by_the_other(tmp_path: Path) -> None:
    async with two_hubs(tmp_path) as hubs:
        ann = await hubs.first.accounts.register("ann")
        await hubs.call(hubs.second, ann.token, "room/create", name=ROOM)
        async with joined(port(hubs.second), ann.token) as seat:
            await hubs.first.accounts.suspend(ann.account, suspended=True)
            assert (await hubs.call(hubs.second, ann.token, "msg/whoami")).status == 401
            with pytest.raises(Closed) as end:
                await seat.kind("never")
            assert end.value.code == NOT_AUTHENTICATED
        await hubs.first.accounts.suspend(ann.account, suspended=False)
        assert (await hubs.call(hubs.second, ann.token, "msg/whoami")).status == 200


@pytest.mark.requirement("events.hold-everywhere")
async def test_what_one_hub_grants_and_revokes_holds_in_the_other(tmp_path: Path) -> None:
    async with two_hubs(tmp_path) as hubs:
        ann = await hubs.first.accounts.register("ann")

        async def says() -> str:
            told = (await hubs.call(hubs.second, ann.token, "msg/threads")).json()
            return str(json.loads(told["result"]["content"][0]["text"]).get("code"))

        assert await says() == "None"
        deny = {"handle": "ann", "patterns": ["!mcp.request.tools/call:msg/threads"]}
        await hubs.operate("folkmoot/grant", **deny)
        assert await says() == "capability_denied"
        await hubs.operate("folkmoot/revoke", **deny)
        assert await says() == "None"


@pytest.mark.requirement("events.hold-everywhere")
async def test_a_changed_handle_is_the_handle_in_the_other_hub(tmp_path: Path) -> None:
    async with two_hubs(tmp_path) as hubs:
        ann = await hubs.first.accounts.register("ann")
        assert b"ann" in (await hubs.call(hubs.second, ann.token, "msg/whoami")).body
        await hubs.first.accounts.change_handle(ann.account, "anna_b")
        assert b"anna_b" in (await hubs.call(hubs.second, ann.token, "msg/whoami")).body


@pytest.mark.requirement("events.hold-everywhere")
async def test_a_tool_that_one_hub_accepts_is_offered_by_the_other(tmp_path: Path) -> None:
    async with two_hubs(tmp_path) as hubs:
        gateways = [hub.behind.gateway for hub in hubs]
        lists = [
            Inventory(tools=(definition("read", description=text),)) for text in ("old", "new")
        ]
        for inventory in lists:
            for gateway in gateways:
                if "files" not in gateway.backends:
                    gateway.attach(Scripted("files"))
                await gateway.arrived("files", inventory)
        assert [len(gateway.catalogue.rows("tools")) for gateway in gateways] == [0, 0]
        assert await gateways[0].accept("files") == ["files:read"]
        await reached(lambda: len(gateways[1].catalogue.rows("tools")) == 1)
        assert await gateways[1].pins.diff() == []


@pytest.mark.requirement("events.hold-everywhere")
async def test_a_tool_that_is_accepted_while_the_other_hub_cannot_read_is_offered_there_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("folkmoot.gateway.gateway.PINS_RETRY_SECONDS", 0.0)
    failures = 0
    async with two_hubs(tmp_path) as hubs:
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


@pytest.mark.requirement("events.hold-everywhere")
async def test_what_happens_in_one_hub_is_followed_in_the_other(tmp_path: Path) -> None:
    async with two_hubs(tmp_path) as hubs:
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
