"""Hours in a minute: a hub under steady load answers right and takes no more room than before."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from folkmoot.store import find_faults
from tests.harness import Answer, ask, read_answer, run
from tests.operator import ask_socket
from tests.process import Process
from tests.siege.host import Host, open_files

SECONDS = 45.0
# Between two requests of one client, so that the load is steady and not all there is.
PAUSE = 0.005

MAX_GROWTH = 4 * 1024 * 1024
MAX_WAL = 16 * 1024 * 1024
MAX_THREADS = 24
# How many more files a hub may have open after the load than before: readers of its store, say.
MAX_KEPT_FILES = 20


class Ask(NamedTuple):
    """A request, and what must come back."""

    path: str
    status: int
    says: str = ""
    method: str = "GET"
    headers: dict[str, str] = {}  # noqa: RUF012


RIGHT = [
    Ask("/", 200, "Folkmoot"),
    Ask("/", 200, "", "HEAD"),
    Ask("/health", 200, '"status":"ok"'),
    Ask("/health/ready", 200, '"status":"ready"'),
    Ask("/metrics", 200, "folkmoot_store_commits_total"),
    Ask("/health/ready?token=x", 200, '"ok":true'),
]
WRONG = [
    Ask("/nowhere", 404, "not_found"),
    Ask("/nowhere", 404, "<html", headers={"accept": "text/html"}),
    Ask("/health", 405, "method_not_allowed", "DELETE"),
    Ask("/", 421, "host_not_allowed", headers={"host": "evil.example"}),
    Ask("/", 403, "origin_not_allowed", "POST", {"origin": "https://evil.example"}),
    Ask("/", 413, "body_too_large", "POST", {"content-length": "99999999999"}),
    Ask("/%ff%00", 404, "not_found"),
]
# What is sent by those who then leave without reading.
RUDE = [
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    b"GET / HTTP/1.1\r\nhost: localhost\r\nx: ",
    b"POST /health HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000\r\n\r\nhalf",
    b"GET /metrics HTTP/1.1\r\nhost: localhost\r\n\r\n" * 20,
    b"x" * 100_000,
]


class Sample(NamedTuple):
    """How much a process takes."""

    resident: int
    threads: int
    wal: int


def sample(pid: int, folder: Path) -> Sample:
    status = Path(f"/proc/{pid}/status").read_text()
    lines = dict(line.split(":", 1) for line in status.splitlines())
    wal = (folder / "folkmoot.db-wal").stat().st_size
    return Sample(int(lines["VmRSS"].split()[0]) * 1024, int(lines["Threads"]), wal)


def most(samples: Iterable[Sample]) -> Sample:
    return Sample(*(max(values) for values in zip(*samples, strict=True)))


class Load:
    """Clients of every kind, until the time is over."""

    def __init__(self, hub: Process | Host, seconds: float, pause: float = PAUSE) -> None:
        self._hub = hub
        self._pause = pause
        self._end = time.monotonic() + seconds
        self.answers = 0

    def _check(self, asked: Ask, answer: Answer) -> None:
        assert answer.status == asked.status, asked
        assert asked.says in answer.text, asked
        self.answers += 1

    async def _until_the_end(
        self, step: Callable[[Any], Awaitable[None]], items: list[Any]
    ) -> None:
        for item in itertools.cycle(items):
            if time.monotonic() > self._end:
                return
            await step(item)
            await asyncio.sleep(self._pause)

    async def keeper(self, items: list[Ask]) -> None:
        """Ask everything on one connection that is kept."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self._hub.port)

        async def step(item: Ask) -> None:
            head = f"{item.method} {item.path} HTTP/1.1\r\nhost: localhost\r\n\r\n"
            writer.write(head.encode())
            self._check(item, await read_answer(reader, method=item.method))

        await self._until_the_end(step, items)
        writer.close()

    async def comer(self, items: list[Ask]) -> None:
        """Ask each thing on a connection of its own."""

        async def step(item: Ask) -> None:
            asked = await ask(self._hub.port, item.path, method=item.method, headers=item.headers)
            self._check(item, asked)

        await self._until_the_end(step, items)

    async def vanisher(self) -> None:
        """Send something, and leave."""

        async def step(raw: bytes) -> None:
            with suppress(OSError):
                _, writer = await asyncio.open_connection("127.0.0.1", self._hub.port)
                writer.write(raw)
                await writer.drain()
                writer.close()
            # A busy hub gets round to it first: more at once from one address would be shed.
            assert (await ask(self._hub.port, "/health")).status == 200

        await self._until_the_end(step, RUDE)

    async def operator(self) -> None:
        """Use the control socket as an operator's scripts would."""
        control = self._hub.folder / "control.sock"
        target = str(self._hub.folder.parent / "backup.db")
        commands = [
            ("folkmoot/status", {}),
            ("folkmoot/check", {}),
            ("folkmoot/backup", {"path": target, "overwrite": True}),
        ]

        async def step(command: tuple[str, dict[str, Any]]) -> None:
            told = await asyncio.to_thread(ask_socket, control, *command)
            assert told.get("whole", True) is True
            await asyncio.sleep(0.25)

        await self._until_the_end(step, commands)

    async def watcher(self) -> list[Sample]:
        """Look at the hub every half second."""
        seen: list[Sample] = []

        async def step(_: None) -> None:
            seen.append(sample(self._hub.child.pid, self._hub.folder))
            await asyncio.sleep(0.5)

        await self._until_the_end(step, [None])
        return seen


async def soak(hub: Process, seconds: float) -> tuple[list[Sample], int]:
    load = Load(hub, seconds)
    before = open_files(hub.child.pid)
    async with asyncio.TaskGroup() as clients:
        for _ in range(4):
            clients.create_task(load.keeper(RIGHT))
        clients.create_task(load.comer(RIGHT))
        clients.create_task(load.comer(WRONG))
        clients.create_task(load.vanisher())
        clients.create_task(load.operator())
        watching = clients.create_task(load.watcher())
    # During the load a busy machine decides how many connections wait to be closed; then all are.
    while open_files(hub.child.pid) > before + MAX_KEPT_FILES:
        assert (await ask(hub.port, "/health")).status == 200
    return watching.result(), load.answers


@pytest.mark.long
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="looks at the hub through /proc")
def test_a_hub_under_steady_load_answers_right_and_does_not_grow(tmp_path):
    folder = tmp_path / "data"
    with Process(folder) as hub:
        samples, answers = run(soak(hub, SECONDS), SECONDS + 60)
        said = hub.stop()
    third = len(samples) // 3
    early, late = most(samples[:third]), most(samples[-third:])
    # Enough to grow by; how fast a hub answers depends on what else the machine does.
    assert answers > SECONDS * 10
    assert late.resident - early.resident < MAX_GROWTH, samples
    assert late.threads <= max(early.threads, MAX_THREADS)
    assert late.wal < MAX_WAL
    assert '"level":"ERROR"' not in said
    assert find_faults(folder / "folkmoot.db") == []
    assert find_faults(tmp_path / "backup.db") == []
