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
from folkmoot.store.postgres import PostgresStore, changes
from tests import nats, postgres
from tests.conftest import settings_of
from tests.nats import NatsProcess, until
from tests.store.support import rows

pytestmark = [*postgres.NEEDED, *nats.NEEDED]

SAY = "account.ann"
CUT = pytest.mark.settings(cut=True)


def publishing(*told: Any, subject: str = SAY) -> Callable[[Tx], Awaitable[None]]:
    async def unit(tx: Tx) -> None:
        for each in told:
            tx.publish(subject, each)

    return unit


@asynccontextmanager
async def node(url: str, server: str, key: bytes) -> AsyncIterator[Any]:
    async with nats.node(server, key) as bus:
        store: Any = await PostgresStore.open(url, shared=bus)
        store.heard = []
        bus.listen(">", lambda event: store.heard.append(event.data))
        try:
            yield store
        finally:
            await store.close()


@pytest.fixture
async def nodes(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[tuple[Any, Any]]:
    """Two nodes; `settings(cut=True)` takes their bus from them."""
    server, key = NatsProcess(), secrets.token_bytes(32)
    url = await postgres.schema_of(tmp_path)
    try:
        async with node(url, server.url, key) as one, node(url, server.url, key) as two:
            await until(lambda: one.bus.peers == two.bus.peers == 1)
            if settings_of(request).get("cut"):
                server.kill()
                await until(lambda: not one.bus.is_connected and not two.bus.is_connected)
            yield one, two
    finally:
        server.kill()


@pytest.mark.parametrize("bus", ["nats", pytest.param("none", marks=CUT)])
async def test_each_change_is_heard_once_in_order(nodes, bus):
    one, two = nodes
    for number in range(20):
        await one.write(publishing(number))
    await until(lambda: len(two.heard) >= 20)
    for _ in range(3):
        await one._log.look()
        await two._log.look()
    assert one.heard == two.heard == list(range(20))


async def test_what_is_of_no_consequence_to_caches_is_not_logged(nodes):
    one, two = nodes
    await one.write(publishing("a letter", subject="mail.ann"))
    await until(lambda: two.heard)
    await one.write(publishing(1, 2))

    logged = rows("SELECT subject, event FROM changes ORDER BY id")
    assert await one.read(logged) == [(SAY, "1"), (SAY, "2")]


async def test_a_change_whose_node_died_before_it_was_published_is_heard(nodes):
    one, two = nodes
    one.bus.emit = lambda *_, **__: None
    await one.write(publishing("unpublished"))
    await until(lambda: one.heard == two.heard == ["unpublished"])


@CUT
async def test_a_change_that_was_undone_is_not_heard(nodes):
    one, two = nodes

    async def undone(tx: Tx) -> None:
        tx.publish(SAY, "undone")
        raise LookupError

    with pytest.raises(LookupError):
        await one.write(undone)
    await one.write(publishing("done"))
    await until(lambda: two.heard)
    assert two.heard == ["done"]


@CUT
async def test_a_change_with_a_lower_number_that_is_committed_later_is_heard(nodes):
    one, two = nodes
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


@CUT
async def test_what_overtook_a_change_is_heard_once_more_after_it(nodes):
    one = nodes[0]
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


def unreachable() -> Any:
    raise ConnectionRefusedError


async def test_a_node_that_cannot_read_the_log_doubts_until_it_can(nodes, monkeypatch):
    one, two = nodes
    doubts: list[bool] = []
    two.bus.listen_doubt(lambda: doubts.append(True))
    real, two._log.connected = two._log.connected, unreachable
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


async def test_a_node_that_was_away_too_long_says_that_it_must_be_restarted(nodes, monkeypatch):
    one = nodes[0]
    await one.write(publishing(1))
    # The loop's clock may stand still while a machine sleeps.
    now = changes.boot_time() + changes.AWAY_SECONDS + 60
    monkeypatch.setattr(changes, "boot_time", lambda: now)
    await one._log.look()
    with pytest.raises(e.DatabaseUnreachable, match="Restart"):
        await one.write(publishing(2))


async def test_old_changes_are_removed(nodes, monkeypatch):
    one, two = nodes
    await one.write(publishing(1))
    await until(lambda: two.heard)
    monkeypatch.setattr(changes, "KEPT_SECONDS", -10.0)
    one._log._trimmed_at = float("-inf")
    await one._log.look()

    assert await one.read(rows("SELECT id FROM changes")) == []
