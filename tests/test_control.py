from __future__ import annotations

import asyncio
import json
import os
import socket
import stat
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import uvloop

from folkmoot.control import (
    Command,
    ControlServer,
    Progress,
    backup_command,
    call,
    check_command,
    server,
    status_command,
)
from folkmoot.core.errors import (
    BackupFailed,
    CommandFailed,
    CommandInvalid,
    ControlError,
    DataFolderInUse,
    DataFolderUnwritable,
    HubNotRunning,
    UnknownCommand,
)
from folkmoot.store import SqliteStore, find_faults
from folkmoot.store.meta import MASTER_KEY_ID, put


async def echo(arguments: dict[str, Any], progress: Progress) -> Any:
    for step in range(arguments.get("steps", 0)):
        progress({"step": step})
    return arguments


COMMANDS: dict[str, Command] = {"echo": echo}


def run(body: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(60):
            await body()

    uvloop.run(bounded())


@asynccontextmanager
async def serving(
    path: Path, commands: Mapping[str, Command] = COMMANDS, **options: Any
) -> AsyncIterator[ControlServer]:
    server = ControlServer(path, commands, **options)
    server.listen()
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(server.serve())
        try:
            yield server
        finally:
            task.cancel()
            server.close()


async def ask(path: Path, command: str, arguments: Any = None, **options: Any) -> Any:
    return await asyncio.to_thread(call, path, command, arguments, **options)


async def raw(path: Path, request: bytes) -> list[dict[str, Any]]:
    reader, writer = await asyncio.open_unix_connection(str(path))
    writer.write(request)
    lines = (await reader.read()).splitlines()
    writer.close()
    return [json.loads(line) for line in lines]


def test_a_command_is_carried_out_with_its_arguments_and_tells_of_its_progress(
    tmp_path: Path,
) -> None:
    path = tmp_path / "control.sock"

    async def body() -> None:
        async with serving(path):
            told: list[dict[str, Any]] = []
            result = await ask(path, "echo", {"steps": 3, "x": None}, on_progress=told.append)
            assert result == {"steps": 3, "x": None}
            assert told == [{"step": 0}, {"step": 1}, {"step": 2}]
            assert await ask(path, "echo") == {}

    run(body)


def test_the_socket_is_private_and_gone_when_the_server_is(tmp_path: Path) -> None:
    path = tmp_path / "control.sock"

    async def body() -> None:
        async with serving(path):
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert not path.exists()

    previous = os.umask(0)
    try:
        run(body)
    finally:
        os.umask(previous)


def test_without_a_running_hub_the_client_says_so(tmp_path: Path) -> None:
    path = tmp_path / "control.sock"
    with pytest.raises(HubNotRunning, match=f"No hub is running on {tmp_path}"):
        call(path, "status")
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    with pytest.raises(HubNotRunning):
        call(path, "status")
    path.unlink()
    path.write_text("")
    with pytest.raises(HubNotRunning):
        call(path, "status")


def test_an_unknown_command_is_refused_with_those_that_are_known(tmp_path: Path) -> None:
    path = tmp_path / "control.sock"

    async def body() -> None:
        async with serving(path):
            with pytest.raises(UnknownCommand, match="it has echo"):
                await ask(path, "reboot")

    run(body)


@pytest.mark.requirement("error.no-traceback")
def test_an_error_reaches_the_operator_as_the_error_it_was_and_a_bug_as_a_sentence(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "control.sock"

    async def refused(arguments: dict[str, Any], progress: Progress) -> None:
        raise BackupFailed("/x: already exists.")

    async def broken(arguments: dict[str, Any], progress: Progress) -> None:
        raise ZeroDivisionError("secret detail")

    async def unsayable(arguments: dict[str, Any], progress: Progress) -> Any:
        return object()

    async def endless(arguments: dict[str, Any], progress: Progress) -> Any:
        return "x" * 2_000_000

    table: dict[str, Command] = {
        "refused": refused,
        "broken": broken,
        "unsayable": unsayable,
        "endless": endless,
    }

    async def body() -> None:
        async with serving(path, table):
            with pytest.raises(BackupFailed, match="already exists"):
                await ask(path, "refused")
            for name in ("broken", "unsayable"):
                with pytest.raises(CommandFailed, match="The hub failed; see its log"):
                    await ask(path, name)
            with pytest.raises(CommandFailed, match="too long"):
                await ask(path, "endless")

    run(body)
    assert "secret detail" in caplog.text


@pytest.mark.parametrize(
    "request_",
    [
        b"\n",
        b"hello\n",
        b"[]\n",
        b'{"command": 1}\n',
        b'{"command": "echo", "extra": 1}\n',
        b'{"command": "echo", "arguments": []}\n',
        b"\xff\n",
        b'{"command": "\xff"}\n',
        b"[" * 60_000 + b"\n",
        b"x" * 70_000 + b"\n",
    ],
)
def test_a_request_that_is_none_is_refused_and_the_server_goes_on(
    tmp_path: Path, request_: bytes
) -> None:
    path = tmp_path / "control.sock"

    async def body() -> None:
        async with serving(path):
            [answer] = await raw(path, request_)
            assert answer["error"]["code"] == CommandInvalid.code
            assert await ask(path, "echo") == {}

    run(body)


def test_whoever_says_nothing_is_sent_away(tmp_path: Path) -> None:
    path = tmp_path / "control.sock"

    async def body() -> None:
        async with serving(path, idle_timeout=0.05):
            [answer] = await raw(path, b'{"command":')
            assert answer["error"]["message"] == "No request came in time."

    run(body)


def test_whoever_leaves_without_a_word_is_told_nothing(tmp_path: Path) -> None:
    path = tmp_path / "control.sock"

    async def body() -> None:
        async with serving(path):
            reader, writer = await asyncio.open_unix_connection(str(path))
            writer.write_eof()
            assert await reader.read() == b""
            writer.close()

    run(body)


def test_more_connections_than_allowed_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "control.sock"

    async def body() -> None:
        started, leave = asyncio.Event(), asyncio.Event()

        async def wait(arguments: dict[str, Any], progress: Progress) -> str:
            started.set()
            await leave.wait()
            return "done"

        async with (
            serving(path, {"wait": wait}, max_connections=1),
            asyncio.TaskGroup() as tasks,
        ):
            waiting = tasks.create_task(ask(path, "wait"))
            await started.wait()
            with pytest.raises(CommandFailed, match="busy"):
                await ask(path, "wait")
            leave.set()
        assert waiting.result() == "done"

    run(body)


def test_whoever_hangs_up_stops_what_was_asked(tmp_path: Path) -> None:
    path = tmp_path / "control.sock"

    async def body() -> None:
        started, stopped = asyncio.Event(), asyncio.Event()

        async def wait(arguments: dict[str, Any], progress: Progress) -> None:
            started.set()
            try:
                await asyncio.Event().wait()
            finally:
                stopped.set()

        async with serving(path, {"wait": wait, "echo": echo}):
            _, writer = await asyncio.open_unix_connection(str(path))
            writer.write(b'{"command": "wait"}\n')
            await started.wait()
            writer.close()
            await stopped.wait()
            assert await ask(path, "echo") == {}

    run(body)


def test_a_hub_that_stops_tells_the_operator_who_waits(tmp_path: Path) -> None:
    path = tmp_path / "control.sock"

    async def body() -> None:
        started = asyncio.Event()

        async def wait(arguments: dict[str, Any], progress: Progress) -> None:
            started.set()
            await asyncio.Event().wait()

        async with asyncio.TaskGroup() as tasks:
            async with serving(path, {"wait": wait}):
                waiting = tasks.create_task(outcome(ask(path, "wait")))
                await started.wait()
            result = await waiting
        assert isinstance(result, CommandFailed)
        assert "hung up" in result.message

    run(body)


async def outcome(asking: Awaitable[Any]) -> Any:
    try:
        return await asking
    except ControlError as error:
        return error


def test_a_client_may_set_how_long_the_hub_may_be_silent(tmp_path: Path) -> None:
    path = tmp_path / "control.sock"

    async def wait(arguments: dict[str, Any], progress: Progress) -> None:
        await asyncio.Event().wait()

    async def body() -> None:
        async with serving(path, {"wait": wait}):
            with pytest.raises(CommandFailed, match=r"did not answer for 0\.05 seconds"):
                await ask(path, "wait", timeout=0.05)

    run(body)


def test_the_socket_of_a_crashed_hub_is_replaced_and_a_living_one_never(tmp_path: Path) -> None:
    path = tmp_path / "control.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))

    async def body() -> None:
        async with serving(path):
            with pytest.raises(DataFolderInUse, match="another hub listens"):
                ControlServer(path, COMMANDS).listen()
            assert await ask(path, "echo") == {}

    run(body)


def test_what_is_no_socket_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "control.sock"
    path.write_text("precious")
    with pytest.raises(DataFolderUnwritable, match="is in the way"):
        ControlServer(path, COMMANDS).listen()
    assert path.read_text() == "precious"
    with pytest.raises(DataFolderUnwritable, match="cannot be created"):
        ControlServer(tmp_path / "missing" / "control.sock", COMMANDS).listen()


def test_a_server_must_listen_before_it_serves(tmp_path: Path) -> None:
    async def body() -> None:
        with pytest.raises(ControlError, match="does not listen"):
            await ControlServer(tmp_path / "control.sock", COMMANDS).serve()

    run(body)


def test_a_data_folder_with_a_very_long_path_works(tmp_path: Path) -> None:
    folder = tmp_path / ("d" * 120) / ("e" * 120)
    folder.mkdir(parents=True)
    path = folder / "control.sock"

    async def body() -> None:
        for _ in range(2):
            async with serving(path):
                assert path.is_socket()
                assert await ask(path, "echo", {"x": 1}) == {"x": 1}
            assert not path.exists()

    run(body)


def test_where_the_system_offers_no_way_around_a_long_path_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("folkmoot.control.wire.DESCRIPTORS", tmp_path / "none")
    path = tmp_path / ("d" * 120) / "control.sock"
    with pytest.raises(ControlError, match="too long for a socket"):
        ControlServer(path, COMMANDS).listen()


@pytest.mark.requirement("key.backup-says-so")
def test_the_standard_commands_do_what_they_say(tmp_path: Path) -> None:
    path = tmp_path / "control.sock"

    async def body() -> None:
        store = await SqliteStore.open(tmp_path / "folkmoot.db")
        await store.write(lambda tx: put(tx, MASTER_KEY_ID, "0123456789abcdef"))
        table = {
            "backup": backup_command(store),
            "check": check_command(store),
            "status": status_command(version="1.2", url="http://127.0.0.1:1/", uptime=lambda: 5.0),
        }
        async with serving(path, table):
            assert await ask(path, "status") == {
                "pid": os.getpid(),
                "version": "1.2",
                "uptime": 5.0,
                "url": "http://127.0.0.1:1/",
                "quotas": {},
            }
            assert await ask(path, "check") == {"whole": True, "faults": []}
            target = tmp_path / "backup.db"
            told: list[dict[str, Any]] = []
            made = await ask(path, "backup", {"path": str(target)}, on_progress=told.append)
            assert made["path"] == str(target)
            assert made["size"] == target.stat().st_size
            assert "0123456789abcdef" in made["warning"]
            assert "not in the backup" in made["warning"]
            assert told[-1]["copied"] == told[-1]["pages"] > 0
            assert find_faults(target) == []
            with pytest.raises(BackupFailed, match="already exists"):
                await ask(path, "backup", {"path": str(target)})
            await ask(path, "backup", {"path": str(target), "overwrite": True})
            for arguments in ({}, {"path": 1}, {"path": "relative.db"}, {"path": "/x", "y": 1}):
                with pytest.raises(CommandInvalid):
                    await ask(path, "backup", arguments)
            with pytest.raises(CommandInvalid):
                await ask(path, "status", {"x": 1})
        await store.close()

    run(body)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_another_user_is_sent_away_even_if_the_mode_would_let_them(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    path = tmp_path / "control.sock"
    program = (
        "import os, socket, sys\n"
        "os.chdir(sys.argv[1])\n"
        "os.setuid(65534)\n"
        "s = socket.socket(socket.AF_UNIX)\n"
        "s.connect('control.sock')\n"
        "try:\n"
        '    s.sendall(b\'{"command": "echo"}\\n\')\n'
        "    print(s.recv(100))\n"
        "except OSError:\n"
        "    print(b'')\n"
    )

    async def body() -> None:
        async with serving(path):
            os.chmod(path, 0o666)  # noqa: PTH101 - nothing waits for it
            child = await asyncio.create_subprocess_exec(
                sys.executable, "-c", program, str(tmp_path), stdout=asyncio.subprocess.PIPE
            )
            out, _ = await child.communicate()
            assert out == b"b''\n"

    run(body)


@pytest.mark.parametrize("request_", [b"a" * 70_000, b"a" * 500, b'{"command":"echo"}\nmore'])
def test_whoever_hangs_up_in_the_middle_of_anything_ends_nothing_but_their_connection(
    tmp_path: Path, request_: bytes
) -> None:
    path = tmp_path / "control.sock"

    def hang_up() -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client, suppress(OSError):
            client.connect(str(path))
            client.sendall(request_)

    async def body() -> None:
        async with serving(path):
            for _ in range(50):
                await asyncio.to_thread(hang_up)
            while True:
                with suppress(CommandFailed):
                    assert await ask(path, "echo", {"x": 1}) == {"x": 1}
                    break

    run(body)


def test_a_connection_that_fails_in_an_unforeseen_way_is_logged_and_ends_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "control.sock"

    async def fail(*_: object) -> None:
        raise LookupError

    async def body() -> None:
        async with serving(path):
            with monkeypatch.context() as patch:
                patch.setattr(server, "send", fail)
                with pytest.raises(CommandFailed, match="hung up"):
                    await ask(path, "echo")
            assert await ask(path, "echo") == {}

    run(body)
    assert "A control connection failed." in caplog.messages


@pytest.mark.parametrize("target", ["/", "/tmp/a\0b", "\0", "", "relative.db"])
def test_a_backup_needs_the_path_of_a_file(tmp_path: Path, target: str) -> None:
    path = tmp_path / "control.sock"

    async def body() -> None:
        store = await SqliteStore.open(tmp_path / "folkmoot.db")
        try:
            async with serving(path, {"backup": backup_command(store)}):
                with pytest.raises(CommandInvalid, match="The path of a backup must"):
                    await ask(path, "backup", {"path": target, "overwrite": True})
        finally:
            await store.close()

    run(body)
