"""`folkmoot status` and `folkmoot backup`: with a running hub and without."""

from __future__ import annotations

import json
import stat
from contextlib import closing
from typing import TYPE_CHECKING, Any

import apsw
import pytest

from folkmoot import __version__
from folkmoot.cli.exits import ExitCode
from folkmoot.cli.output import duration, size

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def test_status_tells_of_the_running_hub(
    start_hub: Callable[..., Any], folkmoot: Callable[..., Any], tmp_path: Path
) -> None:
    hub = start_hub("--data", "here")
    ran = folkmoot("status", "--data", "here")
    assert (ran.code, ran.err) == (0, "")
    assert hub.url in ran.out
    told = json.loads(folkmoot("status", "--data", "here", "--json").out)
    assert told["uptime"] > 0
    del told["uptime"]
    assert told == {
        "url": hub.url,
        "version": __version__,
        "pid": hub.process.pid,
        "data": str(tmp_path / "here"),
    }


def test_status_without_a_hub_has_an_exit_code_of_its_own(
    folkmoot: Callable[..., Any], tmp_path: Path
) -> None:
    ran = folkmoot("status")
    assert ran.code == ExitCode.NOT_RUNNING
    assert ran.err == f"folkmoot: error: No hub is running on {tmp_path / '.folkmoot'}.\n"


@pytest.mark.requirement("store.backup", "key.backup-says-so")
def test_a_backup_is_whole_private_and_says_where_the_key_is(
    start_hub: Callable[..., Any], folkmoot: Callable[..., Any], tmp_path: Path
) -> None:
    hub = start_hub()
    while_running = folkmoot("backup", "one.db")
    assert hub.stop().code == 0
    while_stopped = folkmoot("backup", "two.db")
    for ran, name in ((while_running, "one.db"), (while_stopped, "two.db")):
        file = tmp_path / name
        assert ran.code == 0
        assert ran.out.endswith(f" to {file}.\n")
        assert ran.err.count("folkmoot: warning: ") == 2
        assert "NOT in the backup" in ran.err
        assert str(tmp_path / ".folkmoot/master.key") in ran.err
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        with closing(apsw.Connection(str(file), flags=apsw.SQLITE_OPEN_READONLY)) as database:
            assert database.pragma("integrity_check") == "ok"

    again = folkmoot("backup", "one.db")
    assert again.code == ExitCode.FAILED
    assert again.err == (
        f"folkmoot: error: {tmp_path / 'one.db'}: exists already; --overwrite replaces it.\n"
    )
    assert folkmoot("backup", "--overwrite", "one.db").code == 0


@pytest.mark.requirement("key.backup-says-so")
def test_a_backup_says_when_the_key_comes_from_the_environment(
    start_hub: Callable[..., Any], folkmoot: Callable[..., Any]
) -> None:
    key = "5f" * 32
    start_hub(FOLKMOOT_MASTER_KEY=key)
    ran = folkmoot("backup", "one.db", FOLKMOOT_MASTER_KEY=key)
    assert "It comes from FOLKMOOT_MASTER_KEY" in ran.err
    assert key not in ran.err + ran.out


def test_what_cannot_be_backed_up_is_one_line(folkmoot: Callable[..., Any], tmp_path: Path) -> None:
    nothing = folkmoot("backup", "one.db")
    assert nothing.code == ExitCode.FAILED
    assert "there is no database yet" in nothing.err
    assert nothing.err.count("\n") == 1
    folder = folkmoot("backup", ".")
    assert folder.err == f"folkmoot: error: {tmp_path}: is a folder; name a file in it.\n"


def test_sizes_and_spans_are_told_as_people_say_them() -> None:
    assert [size(count) for count in (0, 1023, 1536, 5 << 20, 3 << 40)] == [
        "0 bytes", "1023 bytes", "1.5 KiB", "5.0 MiB", "3.0 TiB",
    ]  # fmt: skip
    assert [duration(span) for span in (0.4, 61, 3600, 90061)] == [
        "0 s", "1 min 1 s", "1 h 0 min", "1 d 1 h",
    ]  # fmt: skip
