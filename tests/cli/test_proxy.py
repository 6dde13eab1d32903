"""`folkmoot proxy`: what it takes, what it says, and how it ends."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from folkmoot.cli import proxy_held, show
from folkmoot.cli.output import ExitCode
from folkmoot.datafolder.proxies import recorded
from folkmoot.proxy.held import HeldView
from folkmoot.proxy.tape import read_tape

SERVER = """\
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if asked["method"] == "leave":
        sys.exit(3)
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": {}}), flush=True)
"""
# A server that answers everything but `leave`.
ECHO = [sys.executable, "-I", "-S", "-c", SERVER]


def asks(number: int, method: str) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method}) + "\n"


@pytest.mark.requirement("proxy.stdio", "proxy.record")
def test_only_messages_are_on_standard_output_and_all_of_them_on_the_tape(cli):
    ran = cli("proxy", "--record", "t.jsonl", "--", *ECHO, given=asks(1, "one") + asks(2, "two"))
    assert ran.code == 0
    assert [json.loads(line)["id"] for line in ran.out.splitlines()] == [1, 2]
    tape = read_tape(cli.folder / "t.jsonl")
    assert len(tape.entries) == 4
    assert tape.end is not None


def test_the_same_command_started_again_records_on_the_next_tape_and_says_so(cli):
    first = cli.folder / "t.jsonl"
    assert cli("proxy", "--record", "t.jsonl", "--", *ECHO, given=asks(1, "one")).err == ""
    before = first.read_bytes()
    for number in (2, 3):
        again = cli("proxy", "--record", "t.jsonl", "--", *ECHO, given=asks(number, "more"))
        assert (again.code, json.loads(again.out)["id"]) == (0, number)
        name = f"t.{number}.jsonl"
        assert again.err == f"folkmoot: note: t.jsonl exists, so this recording goes to {name}.\n"
        assert len(read_tape(cli.folder / name).entries) == 2
    assert first.read_bytes() == before
    # A hub of the same user finds them again.
    remembered = recorded(cli.folder / "state/folkmoot/recordings").values()
    assert sorted(it.name for it in remembered) == ["t.2.jsonl", "t.3.jsonl", "t.jsonl"]


@pytest.mark.requirement("proxy.own-answers")
def test_an_answer_of_the_proxys_own_is_on_the_tape_as_such_and_not_compared(cli):
    ran = cli("proxy", "--record", "t.jsonl", "--", *ECHO, given=asks(1, "one") + asks(2, "leave"))
    told = json.loads(ran.out.splitlines()[1])["error"]
    assert told["message"] == "The server ended before it answered."
    last = read_tape(cli.folder / "t.jsonl").entries[-1]
    assert (last.verdict, last.by, last.error) == ("block", "proxy", told)
    assert "[answered by the proxy]" in cli("tape", "show", "t.jsonl").out
    # Another time it does not leave, and that is no difference.
    played = cli("tape", "play", "t.jsonl", "--", *ECHO[:-1], SERVER.replace("leave", "go"))
    assert played.code == 0, played
    assert "2 calls, 1 the same, 1 not compared" in played.out + played.err


@pytest.mark.requirement("proxy.slow-start")
def test_a_server_that_says_nothing_is_given_up_after_the_time_it_has_to_start(cli):
    silent = [sys.executable, "-I", "-S", "-c", "import time; time.sleep(60)"]
    ran = cli("proxy", "--start-timeout", "1", "--", *silent, given=asks(1, "one"))
    assert json.loads(ran.out)["error"]["message"] == (
        "The server said nothing in 1 s and was ended."
    )


def test_what_is_no_file_is_not_recorded_beside(cli, tmp_path):
    (tmp_path / "t.jsonl").mkdir()
    told = "t.jsonl: already exists"
    cli.fails("proxy", "--record", "t.jsonl", "--", *ECHO, told=told, given=asks(1, "one"))
    assert [each.name for each in tmp_path.iterdir() if each.name.startswith("t.")] == ["t.jsonl"]


@pytest.mark.parametrize("rules", [[], ["--rules", "rules.toml"]], ids=["alone", "with rules"])
def test_a_command_that_is_not_there_is_told_to_client_and_user_and_leaves_no_empty_tape(
    cli, tmp_path, rules
):
    (tmp_path / "rules.toml").write_text('[[rule]]\nname = "all"\naction = "continue"\n')
    ran = cli("proxy", "--record", "t.jsonl", *rules, "--", "no-such-server", given=asks(1, "one"))
    assert ran.code == ExitCode.FAILED
    assert json.loads(ran.out)["error"]["data"]["code"] == "server_unreachable"
    assert ran.err == "folkmoot: error: no-such-server cannot be started: it was not found.\n"
    assert not (tmp_path / "t.jsonl").exists()


def test_a_server_that_ends_before_its_client_is_a_failure(cli):
    with cli.begin("proxy", "--", *ECHO) as process:
        process.stdin.write(asks(1, "leave"))
        process.stdin.flush()
        assert (
            json.loads(process.stdout.readline())["error"]["data"]["code"] == "server_unreachable"
        )
        assert process.wait(60) == ExitCode.FAILED
        assert process.stderr.read() == "folkmoot: error: The server has ended.\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["ctrl-c", "term"])
def test_a_proxy_that_listens_says_where_and_ends_well_when_it_is_stopped(tmp_path, cli, number):
    listen = ("proxy", "--listen", "127.0.0.1:0", "--record-dir", "tapes", "--", *ECHO)
    with cli.begin(*listen, stdin=subprocess.DEVNULL) as process:
        said = [process.stdout.readline() for _ in range(3)]
        found = re.fullmatch(r"The proxy listens at  (http://127\.0\.0\.1:\d+)/mcp\n", said[0])
        assert found, said
        assert said[1:] == [f"     for HTTP+SSE at  {found[1]}/sse\n", "Press Ctrl-C to stop.\n"]
        process.send_signal(number)
        _, err = process.communicate(timeout=60)
        assert (process.wait(), err) == (ExitCode.OK, "")
    assert [each.name for each in (tmp_path / "tapes").iterdir()] == [".redaction-key"]


def test_a_proxy_that_a_script_started_in_the_background_ends_at_sigint(cli):
    # A shell without job control has SIGINT ignored in what it starts with &.
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        process = cli.begin("proxy", "--listen", "127.0.0.1:0", "--", *ECHO)
    finally:
        signal.signal(signal.SIGINT, before)
    with process:
        assert process.stdout.readline().startswith("The proxy listens at ")
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == ExitCode.OK


def test_a_port_that_is_taken_is_told_with_the_option_that_chooses_it(cli):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ran = cli("proxy", "--listen", f"127.0.0.1:{port}", "--record", "t.jsonl", "--", *ECHO)
    told = "choose another port with --listen.\n"
    assert (ran.code, ran.out, ran.err.endswith(told)) == (ExitCode.LISTEN, "", True)
    assert not (cli.folder / "t.jsonl").exists()


def test_someone_at_a_terminal_is_told_that_a_client_is_awaited(cli):
    with cli.at_terminal("proxy", "--", *ECHO) as terminal:
        terminal.wait_for("This command is meant to be started by an MCP client")
        terminal.type("\x04")
        assert terminal.process.wait(60) == ExitCode.OK


def test_held_messages_are_shown_below_each_other_on_a_terminal(capsys, monkeypatch):
    monkeypatch.setattr(show, "on_terminal", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    view = HeldView(
        1, time.time() - 4.5, "client_to_server", "request", "tools/call", "rm",
        rule="ask", reason="Why?", preview="{" + "x" * 90,
    )  # fmt: skip
    held = proxy_held.HoldingProcess(7, Path("socket"))
    show.show_entries([proxy_held.entry(held, view)] * 2, "")
    shown = capsys.readouterr().out.splitlines()
    assert shown[:2] == ["7/1  tools/call rm", "  → server, for 4 s, by ask: Why?"]
    assert shown[2:4] == [f"  {{{'x' * 77}", f"  {'x' * 13}"]
    assert shown[4:] == shown[:4]


def test_a_proxy_says_what_it_holds_and_passes_on_what_was_made_of_it(cli):
    (cli.folder / "rules.toml").write_text(
        '[[rule]]\nname = "ask"\nwhen = { type = "request", tool = "rm" }\n'
        'action = "hold"\nreason = "Sure?"\n'
    )
    server = SERVER.replace('"result": {}', '"result": asked.get("params", {})')
    call = {"jsonrpc": "2.0", "id": 5, "method": "tools/call",
            "params": {"name": "rm", "arguments": {"path": "/"}}}  # fmt: skip
    ruled = ("proxy", "--rules", "rules.toml", "--", sys.executable, "-IS", "-c", server)
    with cli.begin(*ruled) as process:
        process.stdin.write(json.dumps(call) + "\n")
        process.stdin.flush()
        said = process.stderr.readline()
        found = re.fullmatch(r"Held (\d+/1), tools/call rm → server, by ask: Sure\?\n", said)
        assert found, said
        decide = f"  Decide with: folkmoot proxy held release|drop {found[1]}\n"
        assert process.stderr.readline() == decide
        call["params"] = {"name": "rm", "arguments": {"path": "/tmp/x"}}
        (cli.folder / "m.json").write_text(json.dumps(call))
        ran = cli("proxy", "held", "release", found[1], "--with", "m.json")
        assert ran == (0, f"Released {found[1]} with your changes.\n", "")
        assert json.loads(process.stdout.readline())["result"] == call["params"]
        assert process.stderr.readline() == f"{found[1]} tools/call rm: released.\n"
