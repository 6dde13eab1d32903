"""`folkmoot proxy`: what it takes, what it says, and how it ends."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from folkmoot.cli import program, proxy_held
from folkmoot.cli.output import ExitCode
from folkmoot.datafolder.proxies import recorded
from folkmoot.proxy.tape import read_tape
from tests.cli.conftest import Ran
from tests.cli.terminal import Terminal
from tests.forge import forked
from tests.forge.forked import Forked

Run = Callable[..., Ran]

GROUPS = ("proxy", "tape", "bridge", "call")
SERVER = """\
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if asked["method"] == "leave":
        sys.exit(3)
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": {}}), flush=True)
"""
ECHO = [sys.executable, "-I", "-S", "-c", SERVER]
"""A server that answers everything but `leave`."""


def asks(number: int, method: str) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method}) + "\n"


@pytest.fixture
def proxied(tmp_path: Path, environment: dict[str, str]) -> Run:
    """Run the proxy with something on its standard input, in a folder of its own."""

    def run(*arguments: str, given: str = "") -> Ran:
        env = {**environment, "XDG_STATE_HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path)}
        done = forked.run(["proxy", *arguments], cwd=tmp_path, env=env, input=given, timeout=60)
        assert "Traceback" not in done.stderr
        return Ran(done.returncode, done.stdout, done.stderr)

    return run


def commands(group: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield path, group
    for name, inner in getattr(group, "commands", {}).items():
        yield from commands(inner, (*path, name))


def test_every_command_of_the_new_groups_explains_itself_within_eighty_columns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    whole = get_command(program.app)
    seen = 0
    for group in GROUPS:
        for path, command in commands(whole.commands[group], ("folkmoot", group)):  # type: ignore[attr-defined]
            with command.make_context(" ".join(path), [], resilient_parsing=True) as context:
                text = command.get_help(context)
            assert text.startswith(f"Usage: {' '.join(path)} "), text
            assert max(map(len, text.splitlines())) <= 80, text
            assert "..." not in re.sub(r"[\]A-Z}]\.\.\.", "", text), text
            seen += 1
    assert seen > 20


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "give either --upstream URL or a command after --"),
        (["--upstream", "http://x/mcp", "--", "cat"], "give either --upstream URL or a command"),
        (["npx", "-y", "server"], "no such command 'npx' (put a server's command after --)"),
        (["--upstream", "nowhere"], "--upstream must be a URL such as"),
        (["--upstream", "ftp://x/"], "--upstream must be a URL such as"),
        (["--listen", "here", "--", "cat"], "--listen must be HOST:PORT"),
        (["--listen", "127.0.0.1:65536", "--", "cat"], "a port from 0 to 65535"),
        (["--record", "a", "--record-dir", "b", "--", "cat"], "either --record or --record-dir"),
        (["--redact", "$.a", "--", "cat"], "--redact needs --record or --record-dir"),
        (["--record", "a", "--redact", "pin", "--", "cat"], "'pin' is not a path in a message"),
        (["--hold-in", "square", "--", "cat"], "--hold-in needs --rules or --interceptor"),
        (["--as", "ada", "--", "cat"], "--as needs --hold-in"),
        (["--header", "x: y", "--", "cat"], "--header needs --upstream"),
        (["--record", "a", "held", "list"], "options come after 'held', not before it"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_makes_no_sense_is_told_in_a_line_and_nothing_is_begun(
    proxied: Run, tmp_path: Path, arguments: list[str], words: str
) -> None:
    ran = proxied(*arguments)
    assert (ran.code, ran.out) == (ExitCode.USAGE, "")
    assert words in ran.err
    assert ran.err.endswith("Try 'folkmoot proxy --help'.\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.requirement("proxy.stdio", "proxy.record")
def test_only_messages_are_on_standard_output_and_all_of_them_on_the_tape(
    proxied: Run, tmp_path: Path
) -> None:
    ran = proxied("--record", "t.jsonl", "--", *ECHO, given=asks(1, "one") + asks(2, "two"))
    assert ran.code == 0
    assert [json.loads(line)["id"] for line in ran.out.splitlines()] == [1, 2]
    tape = read_tape(tmp_path / "t.jsonl")
    assert len(tape.entries) == 4
    assert tape.end is not None


def test_the_same_command_started_again_records_on_the_next_tape_and_says_so(
    proxied: Run, tmp_path: Path
) -> None:
    first = tmp_path / "t.jsonl"
    assert proxied("--record", "t.jsonl", "--", *ECHO, given=asks(1, "one")).err == ""
    before = first.read_bytes()
    for number in (2, 3):
        again = proxied("--record", "t.jsonl", "--", *ECHO, given=asks(number, "more"))
        assert (again.code, json.loads(again.out)["id"]) == (0, number)
        name = f"t.{number}.jsonl"
        assert again.err == f"folkmoot: note: t.jsonl exists, so this recording goes to {name}.\n"
        assert len(read_tape(tmp_path / name).entries) == 2
    assert first.read_bytes() == before
    # A hub of the same user finds them again.
    remembered = recorded(tmp_path / "folkmoot" / "recordings").values()
    assert sorted(it.name for it in remembered) == ["t.2.jsonl", "t.3.jsonl", "t.jsonl"]


@pytest.mark.requirement("proxy.own-answers")
def test_an_answer_of_the_proxys_own_is_on_the_tape_as_such_and_not_compared(
    proxied: Run, folkmoot: Run, tmp_path: Path
) -> None:
    ran = proxied("--record", "t.jsonl", "--", *ECHO, given=asks(1, "one") + asks(2, "leave"))
    told = json.loads(ran.out.splitlines()[1])["error"]
    assert told["message"] == "The server ended before it answered."
    last = read_tape(tmp_path / "t.jsonl").entries[-1]
    assert (last.verdict, last.by, last.error) == ("block", "proxy", told)
    assert "[answered by the proxy]" in folkmoot("tape", "show", "t.jsonl").out
    # Another time it does not leave, and that is no difference.
    played = folkmoot("tape", "play", "t.jsonl", "--", *ECHO[:-1], SERVER.replace("leave", "go"))
    assert played.code == 0, played
    assert "2 calls, 1 the same, 1 not compared" in played.out + played.err


@pytest.mark.requirement("proxy.slow-start")
def test_a_server_that_says_nothing_is_given_up_after_the_time_it_has_to_start(
    proxied: Run,
) -> None:
    silent = [sys.executable, "-I", "-S", "-c", "import time; time.sleep(60)"]
    ran = proxied("--start-timeout", "1", "--", *silent, given=asks(1, "one"))
    assert json.loads(ran.out)["error"]["message"] == (
        "The server said nothing in 1 s and was ended."
    )


def test_what_is_no_file_is_not_recorded_beside(proxied: Run, tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").mkdir()
    ran = proxied("--record", "t.jsonl", "--", *ECHO, given=asks(1, "one"))
    assert (ran.code, ran.out) == (1, "")
    assert "t.jsonl: already exists" in ran.err
    assert [each.name for each in tmp_path.iterdir() if each.name.startswith("t.")] == ["t.jsonl"]


@pytest.mark.parametrize("rules", [[], ["--rules", "rules.toml"]], ids=["alone", "with rules"])
def test_a_command_that_is_not_there_is_told_to_client_and_user_and_leaves_no_empty_tape(
    proxied: Run, tmp_path: Path, rules: list[str]
) -> None:
    (tmp_path / "rules.toml").write_text('[[rule]]\nname = "all"\naction = "continue"\n')
    ran = proxied("--record", "t.jsonl", *rules, "--", "no-such-server", given=asks(1, "one"))
    assert ran.code == ExitCode.FAILED
    assert json.loads(ran.out)["error"]["data"]["code"] == "server_unreachable"
    assert ran.err == "folkmoot: error: no-such-server cannot be started: it was not found.\n"
    assert not (tmp_path / "t.jsonl").exists()


def test_a_server_that_ends_before_its_client_is_a_failure(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    with Forked(
        ["proxy", "--", *ECHO],
        cwd=tmp_path,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(asks(1, "leave"))
        process.stdin.flush()
        assert (
            json.loads(process.stdout.readline())["error"]["data"]["code"] == "server_unreachable"
        )
        assert process.wait(60) == ExitCode.FAILED
        assert process.stderr.read() == "folkmoot: error: The server has ended.\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["ctrl-c", "term"])
def test_a_proxy_that_listens_says_where_and_ends_well_when_it_is_stopped(
    tmp_path: Path, environment: dict[str, str], number: int
) -> None:
    with Forked(
        ["proxy", "--listen", "127.0.0.1:0", "--record-dir", "tapes", "--", *ECHO],
        cwd=tmp_path,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        said = [process.stdout.readline() for _ in range(3)]
        found = re.fullmatch(r"The proxy listens at  (http://127\.0\.0\.1:\d+)/mcp\n", said[0])
        assert found, said
        assert said[1:] == [f"     for HTTP+SSE at  {found[1]}/sse\n", "Press Ctrl-C to stop.\n"]
        process.send_signal(number)
        _, err = process.communicate(timeout=60)
        assert (process.wait(), err) == (ExitCode.OK, "")
    assert [each.name for each in (tmp_path / "tapes").iterdir()] == [".redaction-key"]


def test_a_port_that_is_taken_is_told_with_the_option_that_chooses_it(
    proxied: Run, tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ran = proxied("--listen", f"127.0.0.1:{port}", "--record", "t.jsonl", "--", *ECHO)
    assert (ran.code, ran.out) == (ExitCode.LISTEN, "")
    assert ran.err.endswith("choose another port with --listen.\n")
    assert not (tmp_path / "t.jsonl").exists()


def test_someone_at_a_terminal_is_told_that_a_client_is_awaited(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    env = {**environment, "TERM": "xterm"}
    with Terminal(["proxy", "--", *ECHO], env=env, cwd=tmp_path) as terminal:
        terminal.wait_for("This command is meant to be started by an MCP client")
        terminal.type("\x04")
        assert terminal.process.wait(60) == ExitCode.OK


def test_held_messages_are_shown_below_each_other_on_a_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    row = proxy_held.HeldRow(
        "7/1", "4 s", "→ server", "tools/call rm", "ask", "Why?", "{" + "x" * 90
    )
    proxy_held.draw(row)
    shown = capsys.readouterr().out.splitlines()
    assert shown[:2] == ["7/1  tools/call rm", "  → server, for 4 s, by ask: Why?"]
    assert shown[2:] == [f"  {{{'x' * 77}", f"  {'x' * 13}"]


def test_a_proxy_says_what_it_holds_and_passes_on_what_was_made_of_it(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    (tmp_path / "rules.toml").write_text(
        '[[rule]]\nname = "ask"\nwhen = { type = "request", tool = "rm" }\n'
        'action = "hold"\nreason = "Sure?"\n'
    )
    server = SERVER.replace('"result": {}', '"result": asked.get("params", {})')
    env = {**environment, "XDG_RUNTIME_DIR": str(tmp_path)}
    call = {"jsonrpc": "2.0", "id": 5, "method": "tools/call",
            "params": {"name": "rm", "arguments": {"path": "/"}}}  # fmt: skip
    with Forked(
        ["proxy", "--rules", "rules.toml", "--", sys.executable, "-IS", "-c", server],
        cwd=tmp_path,
        env=env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(json.dumps(call) + "\n")
        process.stdin.flush()
        said = process.stderr.readline()
        found = re.fullmatch(r"Held (\d+/1), tools/call rm → server, by ask: Sure\?\n", said)
        assert found, said
        decide = f"  Decide with: folkmoot proxy held release|drop {found[1]}\n"
        assert process.stderr.readline() == decide
        call["params"] = {"name": "rm", "arguments": {"path": "/tmp/x"}}
        (tmp_path / "m.json").write_text(json.dumps(call))
        ran = forked.run(
            ["proxy", "held", "release", found[1], "--with", "m.json"],
            cwd=tmp_path, env=env, timeout=60,
        )  # fmt: skip
        assert ran.stdout == f"Released {found[1]} with your changes.\n", ran.stderr
        assert json.loads(process.stdout.readline())["result"] == call["params"]
        assert process.stderr.readline() == f"{found[1]} tools/call rm: released.\n"
