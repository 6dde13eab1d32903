"""`folkmoot tape list`, `show` and `stats`."""

from __future__ import annotations

import json

import pytest
from rich.cells import cell_len

from folkmoot.proxy.tape import TapeSide
from tests.proxy.tape.studio import TO_CLIENT, TO_SERVER, conversation, recording

EVIL = "\x1b[2J\x1b]0;owned\x07 \u202eabc \r\n\x9b31m"


def test_tapes_of_a_folder_are_listed_and_other_files_passed_over(here, tape):
    conversation(tape.with_name("b.jsonl.zst"), end=False)
    tape.with_name("notes.jsonl").write_text('{"no": "tape"}\n')
    tape.with_name("readme.txt").write_text("no")
    ran = here("list")
    assert (ran.code, ran.err) == (0, "")
    assert [line.split() for line in ran.out.splitlines()] == [
        ["a.jsonl", "2026-11-18T11:06:40.000Z", "2.725", "20", "9", "3", "stdio-stdio", "whole",
         "plain"],
        ["b.jsonl.zst", "2026-11-18T11:06:40.000Z", "2.725", "20", "9", "3", "stdio-stdio", "open",
         "zst"],
    ]  # fmt: skip
    told = json.loads(here("list", "--json", "a.jsonl").out)
    assert [(each["file"], each["messages"], each["state"]) for each in told] == [
        ("a.jsonl", 20, "whole")
    ]


def test_a_tape_that_is_broken_is_told_and_the_others_are_listed(here, tape):
    lines = tape.read_bytes().splitlines(keepends=True)
    tape.with_name("b.jsonl").write_bytes(b"".join([*lines[:5], b"{broken\n", *lines[6:]]))
    ran = here("list", ".", "none.jsonl")
    assert ran.code == 1
    assert ran.out.startswith("a.jsonl")
    broken, none = ran.err.splitlines()
    assert broken.startswith("folkmoot: error: b.jsonl: line 6 cannot be read")
    assert none == "folkmoot: error: none.jsonl: cannot be read: No such file or directory."


def test_an_empty_folder_has_no_tapes(here):
    assert here("list") == (0, "", "No tapes here.\n")


def test_a_tape_is_shown_as_a_timeline(here, tape):
    ran = here("show", "a.jsonl")
    assert (ran.code, ran.err) == (0, "")
    lines = ran.out.splitlines()
    assert len(lines) == 20
    assert lines[5:7] == [
        '   6      0.217  →  tools/call echo  {"message":"hello"}',
        "   7      0.222  ←  tools/call echo  5.00 ms  Echo: hello",
    ]
    assert lines[11].endswith("←  tools/call slow  1.50 s (to 8)  done")
    assert lines[13].endswith("2.00 ms  tool error: a is no number")
    assert lines[15].endswith("error -32602: Unknown tool: boom")
    assert lines[16].endswith("→  tools/call rm  [blocked by deny]  rm is not allowed here.")
    assert lines[18].endswith("[changed by scrub]  info everything: ready")


def test_filters_choose_what_is_shown(here, tape):
    def numbers(*options: str) -> list[int]:
        ran = here("show", "a.jsonl", *options)
        return [int(line.split()[0]) for line in ran.out.splitlines()]

    calls = ("--kind", "mcp.request.tools/call:*", "--direction", "client")
    assert numbers(*calls, "--limit", "2") == [6, 8]
    assert numbers("--errors", "--pairs") == [13, 14, 15, 16, 17, 18]
    assert numbers("--method", "notifications/*", "--last", "2") == [9, 19]
    assert numbers("--text", "hello", "--session", "5f2a", "--from", "7", "--to", "9") == [7]
    ran = here("show", "a.jsonl", "--text", "nothing of the sort")
    assert ran == (0, "", "No message matches.\n")


def test_messages_are_shown_as_json_for_programs(here, tape):
    out = here("show", "a.jsonl", "--json", "--from", "17").out
    told = [json.loads(line) for line in out.splitlines()]
    assert (told[0]["verdict"], told[0]["error"]["message"]) == ("block", "rm is not allowed here.")
    assert (told[1]["answers"], told[1]["outcome"]) == (17, "error")
    assert told[2]["at_server"]["params"]["data"] == "?"
    assert told[3]["message"] == {"jsonrpc": "2.0", "id": 7, "method": "ping"}


@pytest.mark.parametrize("columns", [80, 40])
def test_a_timeline_fits_the_terminal(cli, tmp_path, columns):
    with recording(tmp_path / "w.jsonl") as studio:
        studio.tool(1, "name" * 30, "日本語" * 60, wide="日本語" * 60)
        studio.tool(2, "echo", "word " * 60, took=0.5)
    shown = cli.shown("tape", "show", "w.jsonl", columns=columns, NO_COLOR="1")
    lines = shown.splitlines()
    assert "10.0 ms" in lines[2] + lines[3]
    assert len(lines) == (6 if columns == 80 else 9)
    assert all(cell_len(line) <= columns for line in lines[:-1]), shown
    assert lines[-1] == "The recording ended: 4 messages."


def test_errors_are_red_on_a_terminal_and_nothing_is_where_colour_is_unwelcome(cli, tape):
    shown = cli.shown("tape", "show", "a.jsonl", "--from", "16", "--to", "16")
    assert "\x1b[31merror -32602: Unknown tool: boom\x1b[0m" in shown
    assert "\x1b" not in cli.shown("tape", "show", "a.jsonl", "--from", "16", NO_COLOR="1")


@pytest.mark.parametrize(
    "command",
    [["show"], ["show", "--full"], ["show", "--json"], ["stats"], ["list"],
     ["export", "--format", "json"], ["export", "--format", "markdown"]],
    ids=" ".join,
)  # fmt: skip
def test_nothing_on_a_tape_makes_the_terminal_do_anything(here, tmp_path, command):
    with recording(tmp_path / "e.jsonl", server=TapeSide("stdio", EVIL)) as studio:
        studio.tool(1, EVIL, EVIL, **{EVIL: EVIL})
        studio.say(TO_SERVER, {"id": EVIL, "method": EVIL, "params": {EVIL: [EVIL]}})
        studio.say(TO_CLIENT, {"id": EVIL, "error": {"code": 1, "message": EVIL, "data": EVIL}})
        studio.say(TO_CLIENT, {"id": "lost" + EVIL, "result": EVIL})
    out = here(*command, "e.jsonl").out
    assert out
    assert not {"\x1b", "\x07", "\x9b", "\u202e", "\r"} & set(out)


def test_numbers_of_a_tape_are_told_with_a_chart(here, tape):
    ran = here("stats", "a.jsonl")
    assert (ran.code, ran.err) == (0, "")
    assert "failed    2 errors, 1 tool error, 1 without answer" in ran.out
    assert "← sampling/createMessage" in ran.out
    assert "under 5 ms  ████████████████████████████████████████ 3\n" in ran.out
    assert "     1.50 s       8  tools/call slow" in ran.out
    told = json.loads(here("stats", "--json", "a.jsonl").out)
    assert told[0]["stats"]["latency"]["max"] == pytest.approx(1.5)


@pytest.mark.parametrize("columns", [80, 40])
@pytest.mark.parametrize("command", ["stats", "list"])
def test_numbers_fit_the_terminal(cli, tape, command, columns):
    shown = cli.shown("tape", command, "a.jsonl", columns=columns, NO_COLOR="1")
    assert max(map(len, shown.splitlines())) <= columns, shown
    assert "20" in shown


def test_answers_that_took_longer_are_found_with_their_requests(here, tmp_path):
    with recording(tmp_path / "s.jsonl") as studio:
        for number, took in enumerate((0.1, 0.5, 0.501, 3.0), 1):
            studio.tool(number, f"tool{number}", "x", took=took)
        studio.say(TO_SERVER, {"id": 9, "method": "ping"})
    for text, found in (
        ("500ms", [6, 8]), ("0.5", [6, 8]), ("0.5s", [6, 8]), ("0", [2, 4, 6, 8]),
        ("1 s", [8]), ("1min", []),
    ):  # fmt: skip
        ran = here("show", "s.jsonl", "--slower-than", text, "--json")
        assert [json.loads(line)["seq"] for line in ran.out.splitlines()] == found, text
    pairs = here("show", "s.jsonl", "--slower-than", "1s", "--pairs").out.splitlines()
    assert ["tool4" in line for line in pairs] == [True, True]


def test_a_file_that_is_no_tape_is_one_clear_line(here, tmp_path):
    (tmp_path / "x.jsonl").write_text("hello\n")
    for command in ("show", "stats", "export"):
        assert here(command, "x.jsonl") == (
            1, "", "folkmoot: error: x.jsonl: is not a tape.\n"
        )  # fmt: skip
    (tmp_path / "folder").mkdir()
    assert here("show", "folder").err.endswith("Is a directory.\n")
