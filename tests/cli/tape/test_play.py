"""`folkmoot tape play`: the recorded client, against a server that lives."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Ran
from tests.proxy.replay.tapes import HANDSHAKE, HELLO, answers, asks, calls, record, tells, text
from tests.testing import small_server

pytestmark = pytest.mark.requirement("proxy.replay")

SECRET = "[redacted:token:0123456789ab]"
SERVER = [sys.executable, small_server.__file__]


@pytest.fixture
def tape(tmp_path: Path) -> Path:
    return record(
        tmp_path / "small.jsonl",
        asks(0, "initialize", HELLO),
        answers(0, small_server.WELCOME),
        *HANDSHAKE[2:],
        calls(1, "ask"),
        asks("old", "roots/list", side="server"),
        answers("old", {"roots": [{"uri": "file:///recorded"}]}, side="client"),
        answers(1, text("file:///recorded")),
        calls(2, "slow", _meta={"progressToken": 5}),
        tells("notifications/progress", {"progressToken": 5, "progress": 1}),
        answers(2, text("done")),
        calls(3, "echo", text=SECRET),
        answers(3, text(SECRET)),
    )


def test_a_server_that_is_the_same_is_found_to_be(cli, tape):
    secret = f"{SECRET}=THE_TOKEN"
    ran = cli("tape", "play", str(tape), "--secret", secret, "--", *SERVER, THE_TOKEN="hunter2")
    assert ran == Ran(0, "4 calls, 4 the same\n", "")


def test_of_a_changed_server_the_change_is_told(cli, tape):
    ran = cli("tape", "play", str(tape), "--", *SERVER, "2")
    assert ran.code == 1
    assert ran.out == (
        "1  initialize  differs\n"
        "    $.result.serverInfo.version\n"
        '      - "1"\n'
        '      + "2"\n'
        f"11  tools/call echo  not played: the tape does not hold {SECRET}\n"
        "4 calls, 2 the same, 1 differs, 1 not played\n"
    )
    told = cli("tape", "play", str(tape), "--json", "--ignore", "$..version", "--", *SERVER, "2")
    assert told.code == 0
    report = json.loads(told.out)
    assert report["summary"] == "4 calls, 3 the same, 1 not played"
    assert [call["outcome"] for call in report["calls"]] == ["same", "same", "same", "not_played"]


def test_a_server_that_cannot_be_started_is_named(cli, tape):
    cli.fails("tape", "play", str(tape), "--", "no-such-program-here", told="no-such-program-here")
    cli.fails("tape", "serve", "gone.jsonl", told="gone.jsonl")
