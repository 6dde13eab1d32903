"""The log of changes: what one node must hear of another, whatever a bus loses."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from folkmoot.core import errors as e
from folkmoot.core.ports import Tx
from tests import nats, postgres
from tests.nats import NatsProcess, until

pytestmark = [*postgres.NEEDED, *nats.NEEDED]

SAY = "account.ann"


def publishing(*told: Any, subject: str = SAY) -> Callable[[Tx], Awaitable[None]]:
    async def unit(tx: Tx) -> None:
        for each in told:
            tx.publish(subject, each)

    return unit


@asynccontextmanager
async def node(url: str, server: str, key: bytes) -> AsyncIterator[Any]:
    from folkmoot.bus.nats import NatsBus
    from folkmoot.bus.nats_client import parse_servers
    from folkmoot.store.postgres import PostgresStore

    bus = NatsBus(parse_servers(server))
    await bus.start(key)
    store = await PostgresStore.open(url, shared=bus)
    store.heard = []
    bus.listen(">", lambda event: store.heard.append(event.data))
    try:
        yield store
    finally:
        await store.close()
        await bus.close()


@asynccontextmanager
async def nodes(folder: Path, *, cut: bool = False) -> AsyncIterator[tuple[Any, Any]]:
    server, key = NatsProcess(), secrets.token_bytes(32)
    url = await postgres.schema_of(folder)
    try:
        async with node(url, server.url, key) as one, node(url, server.url, key) as two:
            await until(lambda: one.bus.peers == two.bus.peers == 1)
            if cut:
                server.kill()
                await until(lambda: not one.bus.is_connected and not two.bus.is_connected)
            yield one, two
    finally:
        server.kill()


@pytest.mark.parametrize("cut", [False, True], ids=["nats", "without-nats"])
async def test_each_change_is_heard_once_in_order(tmp_path, cut):
    async with nodes(tmp_path, cut=cut) as (one, two):
        for number in range(20):
            await one.write(publishing(number))
        await until(lambda: len(two.heard) >= 20)
        for _ in range(3):
            await one._log.look()
            await two._log.look()
        assert one.heard == two.heard == list(range(20))


async def test_what_is_of_no_consequence_to_caches_is_not_logged(tmp_path):
    async with nodes(tmp_path) as (one, two):
        await one.write(publishing("a letter", subject="mail.ann"))
        await until(lambda: two.heard)
        await one.write(publishing(1, 2))

        async def rows(tx: Tx) -> list[Any]:
            return await tx.fetch("SELECT subject, event FROM changes ORDER BY id")

        assert await one.read(rows) == [(SAY, "1"), (SAY, "2")]


async def test_a_change_whose_node_died_before_it_was_published_is_heard(tmp_path):
    async with nodes(tmp_path) as (one, two):
        one.bus.emit = lambda *_, **__: None
        await one.write(publishing("unpublished"))
        await until(lambda: one.heard == two.heard == ["unpublished"])


async def test_a_change_that_was_undone_is_not_heard(tmp_path):
    async with nodes(tmp_path, cut=True) as (one, two):

        async def undone(tx: Tx) -> None:
            tx.publish(SAY, "undone")
            raise LookupError

        with pytest.raises(LookupError):
            await one.write(undone)
        await one.write(publishing("done"))
        await until(lambda: two.heard)
        assert two.heard == ["done"]


async def test_a_change_with_a_lower_number_that_is_committed_later_is_heard(tmp_path):
    async with nodes(tmp_path, cut=True) as (one, two):
        async with one._pool.acquire() as slow:
            transaction = slow.transaction()
            await transaction.start()
            await slow.execute("INSERT INTO changes (subject, event) VALUES ('grants.x', '1')")
            await one.write(publishing("later"))
            await until(lambda: two.heard == ["later"])
            for _ in range(3):
                await two._log.look()
            await transaction.commit()
        await until(lambda: two.heard == ["later", 1])


async def test_what_overtook_a_change_is_heard_once_more_after_it(tmp_path):
    async with nodes(tmp_path, cut=True) as (one, _):
        bus = one.bus
        async with one._pool.acquire() as connection:
            rows = await connection.fetch(
                "INSERT INTO changes (subject, event) VALUES ($1, '1'), ($1, '2') RETURNING id",
                SAY,
            )
        # As if the bus had carried the second before the first.
        bus.emit(SAY, 2, change=rows[1][0])
        bus.emit(SAY, 1, change=rows[0][0])
        await until(lambda: len(one.heard) == 3)
        assert one.heard == [2, 1, 2]
        await one._log.look()
        assert one.heard == [2, 1, 2]


async def test_a_node_that_cannot_read_the_log_doubts_until_it_can(tmp_path, monkeypatch):
    from folkmoot.store.postgres import changes

    async with nodes(tmp_path) as (one, two):
        doubts: list[bool] = []
        two.bus.listen_doubt(lambda: doubts.append(True))
        real, two._log.connected = two._log.connected, Unreachable()
        await until(lambda: len(doubts) >= 2)
        await one.write(publishing("meanwhile"))
        two._log.connected = real
        await until(lambda: "meanwhile" in two.heard)
        # On a busy machine, a node may come too late to the log and rightly doubt.
        monkeypatch.setattr(changes, "TRUST_SECONDS", 3_600.0)
        await two._log.look()
        doubts.clear()
        await asyncio.sleep(2 * changes.LOOK_SECONDS)
        assert doubts == []


class Unreachable:
    """Connections to a server that does not answer."""

    was_asked = False

    def __call__(self) -> Any:
        self.was_asked = True
        raise ConnectionRefusedError


async def test_a_node_that_was_away_too_long_says_that_it_must_be_restarted(tmp_path, monkeypatch):
    from folkmoot.store.postgres import changes

    async with nodes(tmp_path) as (one, _):
        await one.write(publishing(1))
        # The loop's clock may stand still while a machine sleeps.
        now = changes.boot_time() + changes.AWAY_SECONDS + 60
        monkeypatch.setattr(changes, "boot_time", lambda: now)
        await one._log.look()
        with pytest.raises(e.DatabaseUnreachable, match="Restart"):
            await one.write(publishing(2))


async def test_old_changes_are_removed(tmp_path, monkeypatch):
    from folkmoot.store.postgres import changes

    async with nodes(tmp_path) as (one, two):
        await one.write(publishing(1))
        await until(lambda: two.heard)
        monkeypatch.setattr(changes, "KEPT_SECONDS", -10.0)
        one._log._trimmed_at = float("-inf")
        await one._log.look()

        async def rows(tx: Tx) -> list[Any]:
            return await tx.fetch("SELECT id FROM changes")

        assert await one.read(rows) == []
