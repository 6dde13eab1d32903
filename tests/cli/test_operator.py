"""`folkmoot status`, `nodes` and `backup`: with a running hub and without."""

from __future__ import annotations

import fcntl
import json
import re
import socket
import stat
import threading
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING

import apsw
import pytest

from folkmoot import __version__
from folkmoot.cli.operator import running
from folkmoot.cli.output import ExitCode, duration, size
from folkmoot.core import errors as e
from folkmoot.datafolder import Paths

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def test_status_tells_of_the_running_hub(start_hub, cli, tmp_path):
    hub = start_hub("--data", "here")
    out = cli.says("status", "--data", "here")
    assert hub.url in out
    told = cli.json("status", "--data", "here")
    assert told["uptime"] > 0
    del told["uptime"]
    quotas = told.pop("quotas")
    assert quotas["mail"] == {"used": 0, "limit": 1 << 36}
    assert set(quotas) == {"mail", "rooms", "memory_rooms"}
    assert "Rooms in memory" in out
    where = {"url": hub.url, "data": str(tmp_path / "here")}
    assert told == {**where, "version": __version__, "pid": hub.process.pid}


def test_status_without_a_hub_has_an_exit_code_of_its_own(cli, tmp_path):
    told = f"folkmoot: error: No hub is running on {tmp_path / '.folkmoot'}.\n"
    cli.fails("status", told=told, code=ExitCode.NOT_RUNNING)


NOTHING_YET = {
    "nodes": "no database yet, so no hub uses it. Start the hub first.\n",
    "grant alice msg/send": "nobody has an account. Start the hub first.\n",
    "keys rotate-master": "no database yet, so it has no key.\n",
    "export ada -o ada.json": "no database yet",
    "backup one.db": "no database yet",
}


@pytest.mark.parametrize("command", NOTHING_YET)
def test_where_no_hub_has_run_a_command_says_so_and_makes_nothing(cli, command):
    ran = cli.fails(*command.split(), told=NOTHING_YET[command])
    assert (ran.err.count("\n"), list(cli.folder.iterdir())) == (1, [])


@pytest.mark.requirement("store.backup", "key.backup-says-so")
def test_a_backup_is_whole_private_and_says_that_the_key_is_elsewhere(start_hub, cli, tmp_path):
    hub = start_hub()
    while_running = cli("backup", "one.db")
    assert hub.stop().code == 0
    for ran, name in ((while_running, "one.db"), (cli("backup", "two.db"), "two.db")):
        file = tmp_path / name
        assert ran.code == 0
        assert ran.out.endswith(f" to {file}.\n")
        assert re.fullmatch(
            r"folkmoot: warning: The master key \(id [0-9a-f]{16}\) is not in the backup.+\n",
            ran.err,
        )
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        with closing(apsw.Connection(str(file), flags=apsw.SQLITE_OPEN_READONLY)) as database:
            assert database.pragma("integrity_check") == "ok"

    told = f"folkmoot: error: {tmp_path / 'one.db'}: already exists. --overwrite replaces it.\n"
    cli.fails("backup", "one.db", told=told)
    assert cli("backup", "--overwrite", "one.db").code == 0


@pytest.fixture
def answering(tmp_path: Path) -> Iterator[Callable[..., None]]:
    """Let something that is no hub answer on the data folder, with one body for each call."""
    folder = tmp_path / ".folkmoot"
    folder.mkdir(mode=0o700)
    with ExitStack() as stack:

        def answer(*answers: tuple[int, bytes]) -> None:
            fcntl.flock(stack.enter_context((folder / "hub.lock").open("w")), fcntl.LOCK_EX)
            listener = stack.enter_context(socket.socket(socket.AF_UNIX))
            listener.bind(str(folder / "control.sock"))
            listener.listen()

            def serve() -> None:
                for status, body in answers:
                    connection, _ = listener.accept()
                    with connection:
                        with connection.makefile("rb") as request:
                            length = 0
                            while line := request.readline().strip().lower():
                                if line.startswith(b"content-length:"):
                                    length = int(line.split()[1])
                            request.read(length)
                        head = b"HTTP/1.1 %d .\r\ncontent-length: %d\r\n\r\n"
                        connection.sendall(head % (status, len(body)) + body)

            thread = threading.Thread(target=serve, daemon=True)
            thread.start()
            stack.callback(thread.join, 10)

        yield answer


def test_a_hubs_answer_neither_forges_a_line_nor_commands_the_terminal(answering, cli):
    told = rb'{"pid": 1, "version": "\u001b]0;x\u0007\u009b2J", "uptime": 1.0, '
    told += rb'"url": "http://x\nData in     /forged"}'
    failed = rb'{"error": {"code": "backup_failed", "message": "bad\nfolkmoot: \u001b[2Jgood"}}'
    unready = rb'{"status": "no", "checks": {"x": {"ok": false, "error": "a\nUp  \u001b[2J"}}}'
    answering((200, told), (503, unready), (200, told), (500, failed))
    plain = cli("status")
    assert plain.code == 0
    assert len(plain.out.splitlines()) == 6
    as_json = cli("status", "--json")
    assert json.loads(as_json.out)["version"] == "\x1b]0;x\x07\x9b2J"
    assert cli("backup", "one.db").err == "folkmoot: error: bad\\nfolkmoot: \\x1b[2Jgood\n"
    for text in (plain.out, as_json.out):
        assert not set("\x07\x1b\x9b") & set(text)


def test_an_answer_that_is_none_is_one_clear_line(answering, cli):
    answering(
        (200, b"5"),
        (200, b'{"path": "/x"}'),
        (200, b"what?"),
        (400, b'{"error": 5}'),
        (200, b'{"pid": 1, "version": "1", "uptime": "long", "url": "u"}'),
    )
    for command in (*[["backup", "one.db"]] * 4, ["status"]):
        cli.fails(*command, told="folkmoot: error: The hub's answer cannot be understood.\n")


def test_a_folder_that_may_not_be_entered_is_told_as_that(tmp_path, monkeypatch):
    def closed(self: Path) -> None:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "lstat", closed)
    with pytest.raises(e.DataFolderUnwritable, match="this user can't open it"):
        running(Paths(tmp_path)).get_status()


def test_what_cannot_be_backed_up_is_one_line(cli, tmp_path):
    own = cli("backup", ".folkmoot/master.key")
    assert "is a file of the data folder itself (master.key)" in own.err
    folder = cli("backup", ".")
    assert folder.err == f"folkmoot: error: {tmp_path}: is a folder. Give the name of a file.\n"


def test_sizes_and_spans_are_told_as_people_say_them():
    assert [size(count) for count in (0, 1023, 1536, 5 << 20, 3 << 40)] == [
        "0 bytes", "1023 bytes", "1.5 KiB", "5.0 MiB", "3.0 TiB",
    ]  # fmt: skip
    assert [duration(span) for span in (0.4, 61, 3600, 90061)] == [
        "0 s", "1 min 1 s", "1 h 0 min", "1 d 1 h",
    ]  # fmt: skip
