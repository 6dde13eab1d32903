"""`folkmoot tape serve`: the recorded server, for any client."""

from __future__ import annotations

import json
import re
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Ran
from tests.harness import ask, run
from tests.proxy.replay.tapes import HANDSHAKE, HELLO, Said, answers, asks, calls, record, text

pytestmark = pytest.mark.requirement("proxy.replay")


@pytest.fixture
def tape(tmp_path: Path) -> Path:
    return record(
        tmp_path / "small.jsonl",
        *HANDSHAKE,
        calls(1, "echo", text="hi"),
        answers(1, text("hi")),
        asks(2, "prompts/list"),
        answers(2, {"prompts": []}),
    )


def lines(*said: Said) -> str:
    return "".join(json.dumps(each.value) + "\n" for each in said)


def answered(done: Ran) -> dict[Any, Any]:
    """What was answered, by id."""
    return {said["id"]: said for said in map(json.loads, done.out.splitlines())}


def test_a_client_on_standard_input_and_output_is_answered_and_the_rest_told(tape, cli):
    misses = tape.with_name("misses.jsonl")
    asked = lines(asks("i", "initialize", HELLO), calls("a", "echo", text="hi"), calls("b", "echo"))
    done = cli("tape", "serve", str(tape), "--strict", "--misses", str(misses), given=asked)
    got = answered(done)
    assert (got["a"]["result"], got["b"]["error"]["data"]["code"]) == (text("hi"), "not_on_tape")
    assert done.code == 1
    assert "Asked, but not on the tape:\n  tools/call echo is not on the tape." in done.err
    assert done.err.endswith("Never asked for:\n  message 6, prompts/list\n")
    (miss,) = map(json.loads, misses.read_text().splitlines())
    assert (miss["message"], miss["nearest"]) == (got["b"]["error"]["message"], 4)


def test_a_client_over_http_is_answered_until_a_signal(tape, cli):
    ignored = ("--ignore", "$.params.arguments")
    with cli.begin("tape", "serve", str(tape), "--listen", "127.0.0.1:0", *ignored) as process:
        said = process.stdout.readline()
        found = re.fullmatch(r"The tape is served at  http://127\.0\.0\.1:(\d+)/mcp\n", said)
        assert found, said
        json_only = "application/json"
        headers = {"content-type": json_only, "accept": f"{json_only}, text/event-stream"}
        body = lines(asks("i", "initialize", HELLO)).encode()
        answer = run(ask(int(found[1]), "/mcp", method="POST", headers=headers, body=body))
        assert answer.status == 200
        assert "mcp-session-id" in answer.headers
        process.send_signal(signal.SIGTERM)
        assert "Never asked for:" in process.stderr.read()
        assert process.wait(60) == 0
