"""Connections of the bus that end, fail or are slow, on the loop that the hub runs on."""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from folkmoot.core.ports import Event
from tests import nats
from tests.certificates import certificate
from tests.contract.test_bus import receive
from tests.faults.cluster import Cable
from tests.harness import run
from tests.nats import NatsProcess, node, until

pytestmark = nats.NEEDED

RESET = struct.pack("ii", 1, 0)
"""For SO_LINGER: closing tells the other side nothing but that it is over."""


@asynccontextmanager
async def cabled(port: int) -> AsyncIterator[tuple[Cable, int]]:
    """A cable to a server on this machine, and the port where it begins."""
    cable = Cable(partial(asyncio.open_connection, "127.0.0.1", port))
    begins = await cable.lay()
    try:
        yield cable, begins
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


@pytest.mark.requirement("bus.missed")
@pytest.mark.parametrize("reset", [False, True])
@pytest.mark.parametrize("encrypted", [False, True])
def test_a_bus_comes_back_however_its_connection_ends(
    tmp_path: Path, encrypted: bool, reset: bool
) -> None:
    chain, key = certificate(tmp_path)
    options = ("--tls", "--tlscert", str(chain), "--tlskey", str(key)) if encrypted else ()
    server = NatsProcess(*options)
    scheme = "tls" if encrypted else "nats"
    trusted = ssl.create_default_context(cafile=str(chain))

    async def body() -> None:
        shared = b"k" * 32
        async with (
            cabled(server.port) as (cable, port),
            node(f"{scheme}://127.0.0.1:{port}", shared, tls=trusted) as one,
            node(f"{scheme}://127.0.0.1:{server.port}", shared, tls=trusted) as two,
        ):
            await until(lambda: one.peers == two.peers == 1)
            subscription = await two.subscribe("a")
            for busy in (False, True, True):
                before = one._client
                tear(cable, reset=reset)
                while one._client in (before, None):
                    if busy:
                        one.emit("b", "x" * 1_000)
                    await asyncio.sleep(0.001)
                found: list[Any] = []
                while Event("a", busy) not in found:
                    one.emit("a", busy)
                    found += await receive(subscription, 1)
            # And it closes while its connection ends.
            tear(cable, reset=reset)
            one.emit("b", "x")

    try:
        run(body(), 120)
    finally:
        server.kill()


def test_a_bus_comes_back_after_a_fault_that_nobody_expected(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from folkmoot.bus.nats_client import BusClient

    answered = BusClient.ask
    asked: list[BusClient] = []

    async def ask(client: BusClient) -> bool:
        asked.append(client)
        if len(asked) == 1:
            raise LookupError("a fault")
        return await answered(client)

    monkeypatch.setattr(BusClient, "ask", ask)

    async def body() -> None:
        async with node() as bus:
            await until(lambda: asked and bus._client not in (asked[0], None))
            await bus.check()

    run(body())
    assert "a connection of the bus failed" in caplog.text


@pytest.mark.parametrize("error", [RuntimeError("closed"), LookupError("a fault")])
def test_a_bus_whose_frames_cannot_be_written_connects_again(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    from folkmoot.bus.nats_client import BusClient

    publish = BusClient.publish
    failed: list[BusClient] = []

    async def fails_once(client: BusClient, *given: Any) -> None:
        if not failed:
            failed.append(client)
            raise error
        await publish(client, *given)

    async def body() -> None:
        shared = b"w" * 32
        async with node(key=shared) as one, node(key=shared) as two:
            await until(lambda: one.peers == two.peers == 1)
            subscription = await two.subscribe("a")
            monkeypatch.setattr(BusClient, "publish", fails_once)
            found: list[Any] = []
            while Event("a", 1) not in found:
                one.emit("a", 1)
                found += await receive(subscription, 1)
            assert failed[0] not in (one._client, two._client)

    run(body())
