"""What a marker says, and what the fixture makes of it."""

from __future__ import annotations

import json
import stat
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from folkmoot.core import errors
from folkmoot.proxy.tape import read_tape
from folkmoot.testing.recorded import Marked, RecordedServer, TapeUnusable, keep, recorded_in
from tests.harness import ask, run
from tests.proxy.replay.tapes import HELLO, Said, answers, asks, calls, record, tells, text
from tests.testing import small_server

MCP = {
    "content-type": "application/json",
    "accept": "application/json, text/event-stream",
}
START = [sys.executable, "-m", "folkmoot"]


def marked(folder: Path, *names: Any, **options: Any) -> Marked:
    return Marked.of(SimpleNamespace(args=names, kwargs=options), folder)


@pytest.mark.parametrize(
    ("names", "options", "words"),
    [
        ((), {}, "Mark the test with its tape"),
        (("../x",), {}, "cannot be called '../x'"),
        (("a", "b"), {}, "Mark the test with its tape"),
        (("a",), {"comand": ["x"]}, "has no option comand"),
        (("a",), {"command": ["x"], "url": "http://x"}, "not both"),
        (("a",), {"mode": "fuzzy"}, "one of exact, arguments, order, not 'fuzzy'"),
        (("a",), {"ignore": "$.x"}, "ignore of a tape is a list"),
    ],
)
def test_a_marker_that_makes_no_sense_is_told_so(tmp_path, names, options, words):
    with pytest.raises(TapeUnusable, match=words):
        marked(tmp_path, *names, **options)
    with pytest.raises(TapeUnusable, match=r"@pytest\.mark\.tape"):
        Marked.of(None, tmp_path)
    with pytest.raises(errors.PathSyntax):
        marked(tmp_path, "a", redact=["arguments"])


def test_a_tape_that_is_not_there_is_recorded(tmp_path):
    for given, rest in (
        ({"command": "python 'my server.py'"}, ["--", "python", "my server.py"]),
        ({"url": "http://localhost/mcp"}, ["--upstream", "http://localhost/mcp"]),
    ):
        server = RecordedServer(
            marked(tmp_path, "a/b", redact=["$.params.x"], **given), "auto", tmp_path
        )
        assert (server.mode, server.path) == ("record", tmp_path / "a" / "b.jsonl")
        recorded = ["--record-dir", str(tmp_path / "recorded"), "--redact", "$.params.x"]
        assert server.command == [*START, "proxy", *recorded, *rest]


def test_a_tape_that_is_there_is_replayed_unless_it_is_to_be_recorded_anew(tmp_path):
    what = marked(tmp_path, "a", command=["x"], mode="exact", ignore=["$.params.now"])
    what.path.write_text("")
    assert RecordedServer(what, "record", tmp_path).mode == "record"
    server = RecordedServer(what, "replay", tmp_path)
    assert server.mode == "replay"
    misses = str(tmp_path / "misses.jsonl")
    assert server.command == [
        *START, "tape", "serve", "--mode", "exact", "--misses", misses,
        "--ignore", "$.params.now", "--", str(what.path),
    ]  # fmt: skip


def test_what_cannot_be_replayed_or_recorded_says_what_to_do(tmp_path):
    with pytest.raises(TapeUnusable, match="Record it with --tapes=record"):
        RecordedServer(marked(tmp_path, "a", command=["x"]), "replay", tmp_path)
    with pytest.raises(TapeUnusable, match="give the marker a command or a url"):
        RecordedServer(marked(tmp_path, "a"), "auto", tmp_path)


def test_a_test_that_never_asked_keeps_no_tape(tmp_path):
    server = RecordedServer(marked(tmp_path, "a", command=["x"]), "auto", tmp_path)
    server.stop()
    server.keep()
    assert not server.path.exists()
    assert server.missed() == ""


async def post(url: str, *said: Said) -> list[Any]:
    """Say something on one connection after the other, in one session."""
    port, headers, answers = int(url.rpartition(":")[2].partition("/")[0]), dict(MCP), []
    for each in said:
        body = json.dumps(each.value).encode()
        answer = await ask(port, "/mcp", method="POST", headers=headers, body=body)
        if session := answer.headers.get("mcp-session-id"):
            headers["mcp-session-id"] = session
        answers.append(answer.json() if answer.body else None)
    return answers


def test_over_http_a_server_is_recorded_once_and_replayed_after(tmp_path):
    hello = (asks(0, "initialize", HELLO), tells("notifications/initialized", side="client"))
    what = marked(tmp_path, "small", command=[sys.executable, small_server.__file__])
    live = RecordedServer(what, "auto", tmp_path / "live")
    try:
        first = run(post(live.url, *hello, calls(1, "echo", text="hi")))
    finally:
        live.stop()
    live.keep()
    assert first[-1]["result"] == text("hi")

    again = RecordedServer(marked(tmp_path, "small"), "auto", tmp_path / "again")
    try:
        second = run(post(again.url, *hello, calls(1, "echo", text="hi"), calls(2, "echo")))
        assert (second[:-1], second[-1]["error"]["data"]["code"]) == (first, "not_on_tape")
        assert "tools/call echo is not on the tape." in again.missed()
    finally:
        again.stop()


def test_several_tapes_become_one_that_is_numbered_through(tmp_path):
    record(tmp_path / "b.jsonl", asks(1, "tools/list"), answers(1, {"of": 1}))
    record(tmp_path / "c.jsonl")
    record(tmp_path / "a.jsonl", asks(1, "tools/list"), answers(1, {"of": 2}))
    kept = tmp_path / "kept" / "it.jsonl"
    keep(recorded_in(tmp_path), kept)
    found = read_tape(kept)
    assert [entry.seq for entry in found.entries] == [1, 2, 3, 4]
    assert [(line.request, line.response) for line in found.correlations] == [(1, 2), (3, 4)]
    assert [e.message.result for e in found.entries[1::2]] == [{"of": 1}, {"of": 2}]  # type: ignore[union-attr]
    assert found.end.messages == 4
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600


def test_a_tape_that_cannot_be_joined_leaves_the_old_one(tmp_path):
    kept = tmp_path / "kept.jsonl"
    kept.write_text("old")
    with pytest.raises(Exception, match=r"gone\.jsonl"):
        keep([tmp_path / "gone.jsonl"], kept)
    assert kept.read_text() == "old"
    assert list(tmp_path.iterdir()) == [kept]
