"""`folkmoot tape serve`: the recorded server, for any client."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Ran
from tests.forge import forked
from tests.forge.forked import Forked
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


def answered(done: subprocess.CompletedProcess[str]) -> dict[Any, Any]:
    """What was answered, by id."""
    return {said["id"]: said for said in map(json.loads, done.stdout.splitlines())}


def test_a_client_on_standard_input_and_output_is_answered_and_the_rest_told(
    tape: Path, environment: dict[str, str]
) -> None:
    misses = tape.with_name("misses.jsonl")
    done = forked.run(
        ["tape", "serve", str(tape), "--strict", "--misses", str(misses)],
        env=environment,
        input=lines(
            asks("i", "initialize", HELLO), calls("a", "echo", text="hi"), calls("b", "echo")
        ),
        timeout=60,
    )
    got = answered(done)
    assert got["a"]["result"] == text("hi")
    assert got["b"]["error"]["data"]["code"] == "not_on_tape"
    assert done.returncode == 1
    assert "Asked, but not on the tape:\n  tools/call echo is not on the tape." in done.stderr
    assert done.stderr.endswith("Never asked for:\n  message 6, prompts/list\n")
    (miss,) = map(json.loads, misses.read_text().splitlines())
    assert miss["message"] == got["b"]["error"]["message"]
    assert miss["nearest"] == 4


def test_a_client_over_http_is_answered_until_a_signal(
    tape: Path, environment: dict[str, str]
) -> None:
    with Forked(
        ["tape", "serve", str(tape), "--listen", "127.0.0.1:0", "--ignore", "$.params.arguments"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        said = process.stdout.readline()
        found = re.fullmatch(r"The tape is served at  http://127\.0\.0\.1:(\d+)/mcp\n", said)
        assert found, said
        answer = run(
            ask(
                int(found[1]),
                "/mcp",
                method="POST",
                headers={
                    "content-type": "application/json",
                    "accept": "application/json, text/event-stream",
                },
                body=lines(asks("i", "initialize", HELLO)).encode(),
            )
        )
        assert answer.status == 200
        assert "mcp-session-id" in answer.headers
        process.send_signal(signal.SIGTERM)
        assert "Never asked for:" in process.stderr.read()
        assert process.wait(60) == 0


def test_what_makes_no_sense_is_refused(folkmoot: Callable[..., Ran], tape: Path) -> None:
    for arguments, words in (
        (["--mode", "fuzzy"], "must be exact, arguments or order"),
        (["--timing", "-1"], "must be a number from 0 to 100"),
        (["--listen", "here"], "HOST:PORT"),
        (["--ignore", "params"], "is not a path in a message"),
    ):
        ran = folkmoot("tape", "serve", str(tape), *arguments)
        assert ran.code == 2
        assert words in ran.err
    ran = folkmoot("tape", "serve", "gone.jsonl")
    assert ran.code == 1
    assert "gone.jsonl" in ran.err
