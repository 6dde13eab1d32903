"""What one of three nodes revokes is refused by all: within 1 s, or 2 s where NATS is cut off.

The tests print how long it took and let a busy machine take longer.
"""

from __future__ import annotations

import asyncio
import sys
import time
from typing import Any

import pytest

from folkmoot.app import Hub
from folkmoot.bus.subjects import SubjectIndex
from folkmoot.core.closecodes import CloseCode
from tests import nats, postgres
from tests.apps import connect
from tests.faults.backends import operator
from tests.harness import ask
from tests.interaction.room_client import ROOM, joined
from tests.mcp_harness import call_tool, until
from tests.nodes import port
from tests.store.test_changes import Unreachable
from tests.test_two_hubs import WAYS, close_code, several_nodes

pytestmark = [*postgres.NEEDED, *nats.NEEDED]


class Revocable:
    """Something that bob may do, until ann or the operator takes it away at the first node."""

    def __init__(self, nodes: list[Hub]) -> None:
        self.nodes = nodes

    async def prepare(self) -> None:
        """Let bob do it, and every node know that he may."""
        self.ann = await self.nodes[0].accounts.register("ann")
        self.bob = await self.nodes[0].accounts.register("bob")
        await call_tool(port(self.nodes[0]), self.ann.token, "room/create", name=ROOM)
        made = await self.nodes[0].accounts.authentication.create(self.bob.account, "phone")
        self.token, self.credential = made.token, made.credential
        for node in self.nodes:
            await until(lambda node=node: self.may(node))

    async def may(self, node: Hub) -> bool:
        """Whether a node lets bob do it."""
        raise NotImplementedError

    async def revoke(self) -> None:
        raise NotImplementedError


class Token(Revocable):
    async def may(self, node: Hub) -> bool:
        return (await call_tool(port(node), self.token, "msg/whoami")).status != 401

    async def revoke(self) -> None:
        await self.nodes[0].accounts.authentication.revoke(self.bob.account, self.credential.id)


class LaterSession(Token):
    """A browser session of the third generation: opened with codes made in sessions."""

    async def prepare(self) -> None:
        await super().prepare()
        browsers, maker = self.nodes[0].accounts.browsers, self.credential.id
        for _ in range(3):
            code = await browsers.create_code(self.bob.account, maker)
            account, parent, _ = await browsers.use_code(code.code)
            made = await browsers.open(account.id, parent)
            maker, self.secret = made.credential.id, made.token
        for node in self.nodes:
            assert await self.may(node)

    async def may(self, node: Hub) -> bool:
        if not hasattr(self, "secret"):
            return await super().may(node)
        where = f"localhost:{port(node)}"
        cookie = f"folkmoot_{port(node)}={self.secret}"
        headers = {"host": where, "cookie": cookie, "sec-fetch-site": "same-origin"}
        return (await ask(port(node), "/v1/threads", headers=headers)).status == 200


class App(Token):
    """An app that bob has connected: its grant is revoked, and its access token ends with it."""

    async def prepare(self) -> None:
        await super().prepare()
        accounts = self.nodes[0].accounts
        pair = await connect(accounts, self.bob.account, scope="account.read")
        [app] = await accounts.apps.list(self.bob.account)
        self.token, self.credential = pair.access_token, app
        for node in self.nodes:
            assert await self.may(node)


class Grant(Revocable):
    """A right of which a deny takes something away again."""

    async def may(self, node: Hub) -> bool:
        told = await call_tool(port(node), self.token, "msg/threads")
        return b"capability_denied" not in told.body

    async def revoke(self) -> None:
        patterns = ["!mcp.request.tools/call:msg/threads"]
        await operator(self.nodes[0], "folkmoot/grant", handle="bob", patterns=patterns)


class Membership(Revocable):
    async def prepare(self) -> None:
        await super().prepare()
        async with joined(port(self.nodes[0]), self.token):
            pass
        for node in self.nodes:
            assert await self.may(node)

    async def may(self, node: Hub) -> bool:
        told = await call_tool(port(node), self.token, "room/read", room=ROOM)
        return b'"isError":true' not in told.body

    async def revoke(self) -> None:
        path, signed = f"/v1/rooms/{ROOM}/participants/bob", f"Bearer {self.ann.token}"
        headers = {"authorization": signed}
        done = await ask(port(self.nodes[0]), path, method="DELETE", headers=headers)
        assert done.status == 200, done


@WAYS
@pytest.mark.parametrize("kind", [Token, LaterSession, App, Grant, Membership])
async def test_what_one_node_revokes_every_node_refuses(tmp_path, kind, cut):
    async with several_nodes(tmp_path, 3, cut=cut) as nodes:
        given = kind(nodes)
        await given.prepare()
        await given.revoke()
        began = time.monotonic()

        async def refused(node: Hub) -> float:
            await until(lambda: given.may(node), False)
            return time.monotonic() - began

        times = await asyncio.gather(*map(refused, given.nodes))
        sys.stdout.write(f"refused after {', '.join(f'{took:.3f} s' for took in times)}\n")


async def test_the_owner_of_a_room_ends_what_a_node_that_hears_of_no_change_keeps_open(tmp_path):
    async with several_nodes(tmp_path) as nodes:
        one, two = nodes
        ann = await one.accounts.register("ann")
        made = await one.accounts.authentication.create(ann.account, "phone")
        await call_tool(port(one), ann.token, "room/create", name=ROOM)
        async with joined(port(one), ann.token), joined(port(two), made.token) as seat:
            store: Any = two.store
            bus: Any = two.bus
            # It can't read the log, and its events are lost.
            store._log.connected = Unreachable()
            listeners, bus._listeners = bus._listeners, SubjectIndex()
            await nats.until(lambda: store._log.connected.was_asked)
            await one.accounts.authentication.revoke(ann.account, made.credential.id)
            assert await close_code(seat) == CloseCode.NOT_AUTHENTICATED
            bus._listeners = listeners
