"""A project that uses the installed wheel is checked by mypy: its calls, and what they answer."""

from __future__ import annotations

import sys
import sysconfig
from zipfile import ZipFile

import pytest

from tests.docs.pages import ROOT
from tests.process import ran

PROJECT = """
from folkmoot.client import Hub

hub = Hub("http://127.0.0.1:8420", "token")
reveal_type(hub.list_threads(state="starred").threads)
reveal_type(hub.of("ann").list_credentials().tokens[0].expires_at)
room = hub.create_room("tea", access="open")
reveal_type(room.owners)
hub.list_threads(state="lost")
hub.list_threads(limit="many")
hub.send_message()
hub.pin_thread("x")
"""


@pytest.mark.long
def test_a_project_that_uses_the_wheel_is_checked(tmp_path):
    made = ran(sys.executable, "-m", "flit_core.wheel", "--outdir", str(tmp_path), cwd=ROOT)
    assert made.returncode == 0, made.stderr
    [wheel] = tmp_path.glob("*.whl")
    ran(sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "venv"))
    [site] = (tmp_path / "venv").glob("lib/python*/site-packages")
    with ZipFile(wheel) as file:
        file.extractall(site)
    # Beside it, what it depends on.
    (site / "others.pth").write_text(sysconfig.get_path("purelib"))
    (tmp_path / "project.py").write_text(PROJECT)
    python = str(tmp_path / "venv/bin/python")
    checking = ("-m", "mypy", "--strict", "--python-executable", python, "project.py")
    checked = ran(sys.executable, *checking, cwd=tmp_path)
    said = [line.partition(": ")[2] for line in checked.stdout.splitlines()]
    assert said == [
        'note: Revealed type is "list[folkmoot.mail.model.Thread]"',
        'note: Revealed type is "int | None"',
        'note: Revealed type is "list[str]"',
        *said[3:],
    ]
    wrong = [line for line in said if line.startswith("error")]
    assert [line.rpartition("[")[2] for line in wrong] == [
        "arg-type]", "arg-type]", "call-arg]", "attr-defined]",
    ]  # fmt: skip
