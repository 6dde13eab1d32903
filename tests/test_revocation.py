"""What one of three nodes revokes is refused by all: within 1 s, or 2 s where NATS is cut off.

The tests print how long it took and let a busy machine take longer. Each is also tried with caches
that forget to doubt, when the refusal must not come: else the tests would prove nothing.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from folkmoot.app import Hub
from folkmoot.bus.subjects import SubjectIndex
from folkmoot.core.closecodes import CloseCode
from tests import nats, postgres
from tests.harness import ask
from tests.interaction.room_client import ROOM, joined
from tests.store.test_changes import Unreachable
from tests.test_two_hubs import WAIT_SECONDS, WAYS, Pair, close_code, port, several_nodes

pytestmark = [*postgres.NEEDED, *nats.NEEDED]

FORGETFUL_SECONDS: Final = 5.0
"""How long a cache that forgets to doubt is watched; all that should have told it comes sooner."""


class Revocable:
    """Something that bob may do, until ann or the operator takes it away at the first node."""

    def __init__(self, nodes: list[Hub]) -> None:
        self.nodes = nodes
        self.at = Pair(nodes[0], nodes[1])

    async def prepare(self) -> None:
        """Let bob do it, and every node know that he may."""
        self.ann = await self.nodes[0].accounts.register("ann")
        self.bob = await self.nodes[0].accounts.register("bob")
        await self.at.call(self.nodes[0], self.ann.token, "room/create", name=ROOM)
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
        return (await self.at.call(node, self.token, "msg/whoami")).status != 401

    async def revoke(self) -> None:
        authentication = self.nodes[0].accounts.authentication
        await authentication.revoke(self.bob.account, self.credential.id)


class LaterSession(Token):
    """A browser session of the third generation: opened with codes made in sessions."""

    async def prepare(self) -> None:
        await super().prepare()
        browsers, maker = self.nodes[0].accounts.browsers, self.credential.id
        for _ in range(3):
            code = await browsers.create_code(self.bob.account, maker)
            account, parent, _ = await browsers.use_code(code.code)
            made = await browsers.open(account.id, parent)
            assert made is not None
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


class Grant(Revocable):
    """A right of which a deny takes something away again."""

    async def may(self, node: Hub) -> bool:
        told = await self.at.call(node, self.token, "msg/threads")
        return b"capability_denied" not in told.body

    async def revoke(self) -> None:
        patterns = ["!mcp.request.tools/call:msg/threads"]
        await self.at.operate("folkmoot/grant", handle="bob", patterns=patterns)


class Membership(Revocable):
    async def prepare(self) -> None:
        await super().prepare()
        async with joined(port(self.nodes[0]), self.token):
            pass
        for node in self.nodes:
            assert await self.may(node)

    async def may(self, node: Hub) -> bool:
        told = await self.at.call(node, self.token, "room/read", room=ROOM)
        return b'"isError":true' not in told.body

    async def revoke(self) -> None:
        path, signed = f"/v1/rooms/{ROOM}/participants/bob", f"Bearer {self.ann.token}"
        headers = {"authorization": signed}
        done = await ask(port(self.nodes[0]), path, method="DELETE", headers=headers)
        assert done.status == 200, done


KINDS = pytest.mark.parametrize("kind", [Token, LaterSession, Grant, Membership])


async def until(holds: Callable[[], Awaitable[bool]], seconds: float = WAIT_SECONDS) -> None:
    async with asyncio.timeout(seconds):
        while not await holds():  # noqa: ASYNC110 - the other node does not tell
            await asyncio.sleep(0.02)


@asynccontextmanager
async def revoked(folder: Path, kind: type[Revocable], cut: bool) -> AsyncIterator[Revocable]:
    async with several_nodes(folder, ("one", "two", "three"), cut=cut) as nodes:
        given = kind(nodes)
        await given.prepare()
        yield given


@WAYS
@KINDS
async def test_what_one_node_revokes_every_node_refuses(
    tmp_path: Path, kind: type[Revocable], cut: bool
) -> None:
    async with revoked(tmp_path, kind, cut) as given:
        await given.revoke()
        began = time.monotonic()

        async def refused(node: Hub) -> float:
            async def refuses() -> bool:
                return not await given.may(node)

            await until(refuses)
            return time.monotonic() - began

        times = await asyncio.gather(*map(refused, given.nodes))
        sys.stdout.write(f"refused after {', '.join(f'{took:.3f} s' for took in times)}\n")


def forget_to_replay(monkeypatch: pytest.MonkeyPatch, _: Revocable) -> None:
    """Read the log of changes, and tell nobody."""
    from folkmoot.bus.nats import NatsBus

    monkeypatch.setattr(NatsBus, "replay", lambda *_: None)
    # A node that comes too late to the log, on a busy machine, doubts rightly.
    monkeypatch.setattr(NatsBus, "doubt", lambda _: None)


def forget_to_doubt(monkeypatch: pytest.MonkeyPatch, given: Revocable) -> None:
    """Believe what is known although the log cannot be read."""
    from folkmoot.bus.nats import NatsBus

    monkeypatch.setattr(NatsBus, "doubt", lambda _: None)
    for node in given.nodes[1:]:
        log: Any = node.store
        log._log._connected = Unreachable()


@pytest.mark.parametrize(
    ("kind", "forget"),
    [(Token, forget_to_replay), (Grant, forget_to_replay), (Token, forget_to_doubt)],
)
async def test_a_cache_that_forgets_to_doubt_is_found(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: type[Revocable],
    forget: Callable[..., None],
) -> None:
    async with revoked(tmp_path, kind, True) as given:
        forget(monkeypatch, given)
        for node in given.nodes[1:]:
            store: Any = node.store
            pool = store._log._connected
            if isinstance(pool, Unreachable):
                # A look that had begun before could still read it.
                await nats.until(lambda pool=pool: pool.was_asked)
        for node in given.nodes:
            assert await given.may(node), "it would be forgotten already"
        await given.revoke()
        assert not await given.may(given.nodes[0])
        ends = time.monotonic() + FORGETFUL_SECONDS
        while time.monotonic() < ends:
            assert await given.may(given.nodes[1])
            await asyncio.sleep(0.1)


async def test_the_owner_of_a_room_ends_what_a_node_that_hears_of_no_change_keeps_open(
    tmp_path: Path,
) -> None:
    async with several_nodes(tmp_path) as nodes:
        one, two = nodes
        ann = await one.accounts.register("ann")
        made = await one.accounts.authentication.create(ann.account, "phone")
        await Pair(one, two).call(one, ann.token, "room/create", name=ROOM)
        async with joined(port(one), ann.token), joined(port(two), made.token) as seat:
            store: Any = two.store
            bus: Any = two.bus
            # It can't read the log, and its events are lost.
            store._log._connected = Unreachable()
            listeners, bus._listeners = bus._listeners, SubjectIndex()
            await nats.until(lambda: store._log._connected.was_asked)
            await one.accounts.authentication.revoke(ann.account, made.credential.id)
            assert await close_code(seat) == CloseCode.NOT_AUTHENTICATED
            bus._listeners = listeners
