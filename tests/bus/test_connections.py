"""Connections of the bus that end, fail or are slow, on the loop that the hub runs on."""

from __future__ import annotations

import asyncio
import secrets
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest

from folkmoot.bus import limits
from folkmoot.bus.nats import NatsBus
from folkmoot.bus.nats_client import NatsConnection
from tests import nats
from tests.contract.test_bus import until_received
from tests.faults.cluster import Cable, Cut
from tests.nats import node, two_nodes, until

pytestmark = nats.NEEDED

# For SO_LINGER: closing tells the other side nothing but that it is over.
RESET = struct.pack("ii", 1, 0)


@asynccontextmanager
async def cabled(url: str = "", **options: Any) -> AsyncIterator[tuple[Cable, NatsBus, NatsBus]]:
    """Two nodes that know each other; a cable leads the first one to its server."""
    url, key = url or nats.SHARED[0].url, secrets.token_bytes(32)
    start, _, port = url.rpartition(":")
    cable = Cable(partial(asyncio.open_connection, "127.0.0.1", int(port)))
    near = f"{start}:{await cable.lay()}"
    try:
        async with node(near, key, **options) as one, node(url, key, **options) as two:
            await until(lambda: one.peers == two.peers == 1)
            yield cable, one, two
    finally:
        await cable.close()


def tear(cable: Cable, *, reset: bool) -> None:
    """End the connections that lead through a cable."""
    for each in list(cable._open):
        if reset:
            handle = each.get_extra_info("socket")
            handle.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            each.transport.abort()
        else:
            each.close()


@pytest.mark.parametrize("reset", [False, True])
@pytest.mark.parametrize("encrypted", [False, True])
@pytest.mark.timeout(120)
async def test_a_bus_comes_back_however_its_connection_ends(secured, encrypted, reset):
    url = secured.url if encrypted else ""
    async with cabled(url, tls=secured.trusting) as (cable, one, two):
        subscription = await two.subscribe("a")
        for busy in (False, True, True):
            before = one._client
            tear(cable, reset=reset)
            while one._client in (before, None):
                if busy:
                    one.emit("b", "x" * 1_000)
                await asyncio.sleep(0.001)
            await until_received(one, subscription, busy)
        # And it closes while its connection ends.
        tear(cable, reset=reset)
        one.emit("b", "x")


async def test_a_bus_comes_back_after_a_fault_that_nobody_expected(monkeypatch, caplog):
    answered = NatsConnection.ask
    asked: list[NatsConnection] = []

    async def ask(client: NatsConnection) -> bool:
        asked.append(client)
        if len(asked) == 1:
            raise LookupError("a fault")
        return await answered(client)

    monkeypatch.setattr(NatsConnection, "ask", ask)
    async with node() as bus:
        await until(lambda: asked and bus._client not in (asked[0], None))
        await bus.check()
    assert "a connection of the bus failed" in caplog.text


@pytest.mark.parametrize("error", [RuntimeError("closed"), LookupError("a fault")])
async def test_a_bus_whose_frames_cannot_be_written_connects_again(monkeypatch, error):
    write = NatsConnection.write
    failed: list[NatsConnection] = []

    async def fails_once(client: NatsConnection, *given: Any) -> None:
        if not failed:
            failed.append(client)
            raise error
        await write(client, *given)

    async with two_nodes() as (one, two):
        subscription = await two.subscribe("a")
        monkeypatch.setattr(NatsConnection, "write", fails_once)
        await until_received(one, subscription, 1)
        assert failed[0] not in (one._client, two._client)


@pytest.mark.timeout(120)
async def test_what_a_slow_server_does_not_take_waits_in_the_bounded_queue(monkeypatch):
    # The system would give the connection up.
    monkeypatch.setattr("folkmoot.bus.nats_client.SILENT_SECONDS", 300.0)
    async with cabled() as (cable, one, two):
        came: list[int] = []
        two.receive(lambda _, message: came.append(len(message)))
        cable.cut(Cut.HELD)
        sent = 0
        while one.send(two.node, b"x" * 1_000_000):
            sent += 1
        way = one._client._transport
        try:
            await until(way.get_write_buffer_size)
            assert way.get_write_buffer_size() < 2_000_000
            assert one._outbox_bytes > limits.MAX_OUTBOX_BYTES / 2
        finally:
            cable.mend()
        await until(lambda: len(came) == sent)
        await until(lambda: not one._outbox)
        assert one._outbox_bytes == 0


@pytest.mark.timeout(120)
async def test_a_message_whose_connection_ended_within_a_frame_is_received_whole_or_not():
    async with cabled() as (cable, one, two):
        came: list[bytes] = []
        two.receive(lambda _, message: came.append(message))
        large = [bytes([number]) * 2_500_000 for number in range(4)]
        for message in large:
            before = one._client
            assert one.send(two.node, message)
            # Some of it is on its way, and some is not.
            await asyncio.sleep(0.002)
            cable.cut(Cut.HELD)
            tear(cable, reset=True)
            cable.mend()
            await until(lambda before=before: one._client not in (before, None))
        while came[-1:] != [b"after"]:
            one.send(two.node, b"after")
            await asyncio.sleep(0.01)
        assert set(came) <= {*large, b"after"}
        assert len(came) == came.count(b"after") + len(set(came) & set(large))


async def test_a_frame_that_fails_where_it_is_heard_does_not_end_the_connection(caplog):
    async with two_nodes() as (one, two):
        before, receive_frame = two._client, two._accept
        failures = [LookupError("a fault")]

        def failing(*given: Any, **named: Any) -> None:
            if failures:
                raise failures.pop()
            receive_frame(*given, **named)

        two._accept = failing  # type: ignore[method-assign]
        missed: list[int] = []
        two._miss = missed.append  # type: ignore[method-assign]
        came: list[bytes] = []
        two.receive(lambda _, message: came.append(message))
        one.send(two.node, b"lost")
        await until(lambda: not failures)
        assert missed
        one.send(two.node, b"heard")
        await until(lambda: came == [b"heard"])
        assert two._client is before
    assert "a frame of the bus failed" in caplog.text
