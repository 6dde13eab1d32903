"""The operator's socket: who gets in, what comes back, and what a client that leaves ends."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import stat
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from folkmoot.clock import SystemClock
from folkmoot.core import errors as e
from folkmoot.operations import Services
from folkmoot.operations.operator.hub import HubStatus
from folkmoot.store import SqliteStore, find_faults
from folkmoot.store.meta import MASTER_KEY_ID, put
from folkmoot.transports import protocol
from folkmoot.transports.operator_socket import OperatorSocket, operator_app
from tests.operator import ask_socket, read_socket

STATUS = HubStatus(1, "1.2", 5.0, "http://127.0.0.1:1/")
TOLD = {
    "pid": 1,
    "version": "1.2",
    "uptime": 5.0,
    "url": "http://127.0.0.1:1/",
    "quotas": {},
    "disk": None,
}
WANTED = {"path": "/srv/backup.db"}


class Made(NamedTuple):
    path: str
    size: int = 1
    master_key_id: str | None = None


class Backups:
    """Tells how far it is, and then waits, fails or is done, as a test says."""

    def __init__(self) -> None:
        self.started = asyncio.Event()
        self.stopped = asyncio.Event()
        self.leave = asyncio.Event()
        self.leave.set()
        self.steps = 0
        self.failure: Exception | None = None

    async def backup(
        self, target: Path, *, overwrite: bool = False, progress: Callable[[int, int], None] | None
    ) -> Any:
        for step in range(self.steps):
            if progress is not None:
                progress(step, self.steps)
        self.started.set()
        try:
            await self.leave.wait()
        except asyncio.CancelledError:
            self.stopped.set()
            raise
        if self.failure is not None:
            raise self.failure
        return Made(str(target))


class Socket(NamedTuple):
    """The operator's way in of a hub."""

    path: Path

    async def ask(self, name: str = "folkmoot/status", *given: Any, **options: Any) -> Any:
        return await asyncio.to_thread(ask_socket, self.path, name, *given, **options)

    async def backup(self, **options: Any) -> Any:
        return await self.ask("folkmoot/backup", WANTED, **options)

    async def raw(self, request: bytes) -> bytes:
        reader, writer = await asyncio.open_unix_connection(str(self.path))
        writer.write(request)
        answer = await reader.read()
        writer.close()
        return answer


@asynccontextmanager
async def serving(path: Path, **more: Any) -> AsyncIterator[Socket]:
    listening = OperatorSocket(path)
    listening.listen()
    app = operator_app(Services(status=lambda: STATUS, **more))
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(listening.serve(app))
        try:
            yield Socket(path)
        finally:
            task.cancel()
            listening.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "control.sock"


@pytest.fixture
def backups() -> Backups:
    return Backups()


@pytest.fixture
async def hub(path: Path, backups: Backups) -> AsyncIterator[Socket]:
    async with serving(path, backups=backups) as made:
        yield made


def post(body: bytes, target: bytes = b"/v1/backup", kind: bytes = b"application/json") -> bytes:
    head = b"POST %s HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: %s\r\n"
    return (head + b"content-length: %d\r\n\r\n") % (target, kind, len(body)) + body


BACKUP = post(json.dumps(WANTED).encode())


async def test_an_operation_is_performed_and_told_as_json(hub):
    assert await hub.ask() == TOLD
    status, body = await asyncio.to_thread(read_socket, hub.path, "/v1/status")
    assert (status, json.loads(body)) == (200, TOLD)


async def test_long_operations_stream_how_far_they_are_then_what_came_of_it(hub, backups):
    told: list[dict[str, Any]] = []
    backups.steps = 3
    made = await hub.backup(on_progress=told.append)
    assert made["path"] == WANTED["path"]
    assert told == [{"copied": step, "pages": 3} for step in range(3)]
    # Whoever does not ask for a stream gets the result alone.
    head, _, body = (await hub.raw(BACKUP)).partition(b"\r\n\r\n")
    assert b"application/json" in head
    assert json.loads(body) == made
    backups.failure = e.BackupFailed("/x: is full.")
    with pytest.raises(e.BackupFailed, match="/x: is full"):
        await hub.backup(on_progress=told.append)
    assert len(told) == 6
    with pytest.raises(e.CommandInvalid, match="must be absolute"):
        await hub.ask("folkmoot/backup", {"path": "here.db"})


async def test_the_socket_is_private_and_gone_when_the_server_is(path):
    previous = os.umask(0)
    try:
        async with serving(path):
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert not path.exists()
    finally:
        os.umask(previous)


def test_without_a_running_hub_the_client_says_so(path):
    def is_told() -> None:
        with pytest.raises(e.HubNotRunning, match=f"No hub is running on {path.parent}"):
            ask_socket(path, "folkmoot/status")

    is_told()
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    is_told()
    path.unlink()
    path.write_text("")
    is_told()


async def test_an_error_reaches_the_operator_as_the_error_it_was_and_a_bug_as_a_sentence(
    hub, backups, caplog
):
    backups.failure = e.BackupFailed("/x: already exists.")
    for _ in range(2):
        with pytest.raises(e.BackupFailed, match="/x: already exists"):
            await hub.backup()
    backups.failure = ZeroDivisionError("secret detail")
    with pytest.raises(e.InternalError, match="Its log has the details"):
        await hub.backup()
    answer = await hub.raw(BACKUP)
    assert b"500 " in answer.partition(b"\r\n")[0]
    assert b"secret detail" not in answer
    assert "secret detail" in caplog.text


NO_REQUESTS = (
    b"\n\nhello\r\n\r\n",
    b"hello\r\n\r\n",
    b'{"command": "status"}\n',
    *(post(body) for body in (b"", b"[]", b"{", b"\xff", b"[" * 60_000, b'{"path": 1}')),
    post(b'{"path": "/x", "y": 1}'),
    post(b'{"path": "/x"}', kind=b"text/plain"),
    post(b"{}", b"/v1/backup?path=/x"),
    post(b"{}", b"/v1/status"),
    b"GET /v1/status?x=1 HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n",
    b"x" * 70_000,
)


async def test_a_request_that_is_none_is_refused_and_the_server_goes_on(hub):
    for request in NO_REQUESTS:
        line = (await hub.raw(request)).partition(b"\r\n")[0]
        assert line == b"" or line.split()[1][:1] == b"4", line
        assert await hub.ask() == TOLD


async def test_wrong_arguments_are_told_in_a_sentence(hub):
    for given, why in (
        ({}, "Missing argument: path"),
        ({"path": 1}, "path must be a string"),
        ({"path": "/x", "y": 1}, "Unknown argument: y"),
    ):
        with pytest.raises(e.ArgumentInvalid, match=why):
            await hub.ask("folkmoot/backup", given)
    # What is not there is told as another version.
    with pytest.raises(e.CommandFailed, match="is of another version"):
        await hub.ask("folkmoot/key")


async def test_whoever_says_nothing_is_sent_away(hub, monkeypatch):
    monkeypatch.setattr(protocol, "HEAD_SECONDS", 0.05)
    assert await hub.raw(b"GET /v1/sta") == b""


@pytest.mark.parametrize("accept", [b"", b"accept: text/event-stream\r\n"], ids=["json", "events"])
async def test_whoever_hangs_up_stops_what_was_asked(hub, backups, accept):
    backups.leave.clear()
    _, writer = await asyncio.open_unix_connection(str(hub.path))
    writer.write(BACKUP.replace(b"host: x\r\n", b"host: x\r\n" + accept))
    await backups.started.wait()
    writer.close()
    await backups.stopped.wait()
    assert await hub.ask() == TOLD


async def test_a_hub_that_stops_tells_the_operator_who_waits(path, backups):
    backups.leave.clear()
    async with serving(path, backups=backups) as hub:
        waits = asyncio.create_task(hub.backup())
        await backups.started.wait()
    with pytest.raises(e.HubStopping):
        await waits


async def test_a_client_may_set_how_long_the_hub_may_be_silent(hub, backups):
    backups.leave.clear()
    with pytest.raises(e.CommandFailed, match=r"did not answer for 0\.05 seconds"):
        await hub.backup(timeout=0.05)


async def test_the_socket_of_a_crashed_hub_is_replaced_and_a_living_one_never(path):
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    async with serving(path) as hub:
        with pytest.raises(e.DataFolderInUse, match="another hub listens"):
            OperatorSocket(path).listen()
        assert await hub.ask() == TOLD


def test_what_is_no_socket_is_left_alone(path, tmp_path):
    path.write_text("precious")
    with pytest.raises(e.DataFolderUnwritable, match="is in the way"):
        OperatorSocket(path).listen()
    assert path.read_text() == "precious"
    with pytest.raises(e.DataFolderUnwritable, match="cannot be created"):
        OperatorSocket(tmp_path / "missing" / "control.sock").listen()


async def test_a_socket_must_listen_before_it_serves(path):
    with pytest.raises(e.ControlError, match="does not listen"):
        await OperatorSocket(path).serve(operator_app(Services()))


async def test_a_data_folder_with_a_very_long_path_works(tmp_path):
    folder = tmp_path / ("d" * 120) / ("e" * 120)
    folder.mkdir(parents=True)
    path = folder / "control.sock"
    for _ in range(2):
        async with serving(path) as hub:
            assert path.is_socket()
            assert await hub.ask() == TOLD
        assert not path.exists()


def test_where_the_system_offers_no_way_around_a_long_path_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("folkmoot.datafolder.proxies.DESCRIPTORS", tmp_path / "none")
    with pytest.raises(e.ControlError, match="too long for a socket"):
        OperatorSocket(tmp_path / ("d" * 120) / "control.sock").listen()


@pytest.mark.requirement("key.backup-says-so")
async def test_a_backup_is_whole_and_says_that_the_key_is_not_in_it(path, tmp_path):
    target = tmp_path / "backup.db"
    store = await SqliteStore.open(tmp_path / "folkmoot.db")
    await store.write(lambda tx: put(tx, MASTER_KEY_ID, "0123456789abcdef"))
    async with serving(path, backups=store, store=store, clock=SystemClock()) as hub:
        assert await hub.ask("folkmoot/check") == {"whole": True, "faults": []}
        told: list[dict[str, Any]] = []
        wanted = {"path": str(target)}
        made = await hub.ask("folkmoot/backup", wanted, on_progress=told.append)
        assert made["path"] == str(target)
        assert made["size"] == target.stat().st_size
        assert "0123456789abcdef" in made["warning"]
        assert "not in the backup" in made["warning"]
        assert told[-1]["copied"] == told[-1]["pages"] > 0
        assert find_faults(target) == []
        with pytest.raises(e.BackupFailed, match="already exists"):
            await hub.ask("folkmoot/backup", wanted)
        await hub.ask("folkmoot/backup", {**wanted, "overwrite": True})
        for wrong in ("/", "/tmp/a\0b", "\0", "", "relative.db"):
            with pytest.raises(e.CommandInvalid, match="The path of a backup must"):
                await hub.ask("folkmoot/backup", {"path": wrong, "overwrite": True})
    await store.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
async def test_another_user_is_sent_away_even_if_the_mode_would_let_them(hub, tmp_path):
    tmp_path.chmod(0o755)
    program = (
        "import os, socket, sys\n"
        "os.chdir(sys.argv[1])\n"
        "os.setuid(65534)\n"
        "s = socket.socket(socket.AF_UNIX)\n"
        "s.connect('control.sock')\n"
        "try:\n"
        "    s.sendall(b'GET /v1/status HTTP/1.1\\r\\nhost: x\\r\\n\\r\\n')\n"
        "    print(s.recv(100))\n"
        "except OSError:\n"
        "    print(b'')\n"
    )
    os.chmod(hub.path, 0o666)  # noqa: PTH101 - nothing waits for it
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, str(tmp_path), stdout=asyncio.subprocess.PIPE
    )
    out, _ = await child.communicate()
    assert out == b"b''\n"


async def test_whoever_hangs_up_in_the_middle_of_anything_ends_nothing_but_their_connection(hub):
    def hang_up(request: bytes) -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client, suppress(OSError):
            client.connect(str(hub.path))
            client.sendall(request)

    for request in (b"a" * 70_000, b"a" * 500, post(b"{}") + b"more") * 20:
        await asyncio.to_thread(hang_up, request)
    assert await hub.ask() == TOLD
