"""`folkmoot tape diff`."""

from __future__ import annotations

import json

from tests.proxy.tape.studio import handshake, recording


def test_tapes_that_say_the_same_end_with_0(here, tape):
    ran = here("diff", "a.jsonl", "a.jsonl")
    assert (ran.code, ran.out) == (0, "")
    assert ran.err.startswith("The tapes are equal.\nLatencies")
    told = json.loads(here("diff", "--json", "a.jsonl", "a.jsonl").out)
    assert (told["same"], told["changes"]) == (True, [])


def test_how_long_calls_took_on_either_tape_is_told_and_makes_no_difference(here, tmp_path):
    for name, took in (("a", (0.01, 0.03, 2.0)), ("b", (0.2, 0.4, 1.0))):
        with recording(tmp_path / f"{name}.jsonl") as studio:
            studio.tool(1, "echo", "x", took=took[0], n=1)
            studio.tool(2, "echo", "x", took=took[1], n=2)
            studio.tool(3, "slow", name, took=took[2])
    ran = here("diff", "a.jsonl", "b.jsonl")
    assert ran.code == 1
    assert ran.out.splitlines()[0] == "tools/call slow: the answer differs  (5/5)  2.00 s → 1.00 s"
    assert ran.err.splitlines() == [
        "1 difference.",
        "Latencies (medians in A and B):",
        "  tools/call slow  2.00 s   1.00 s  2.0x faster   1 call",
        "  tools/call echo  20.0 ms  300 ms  15.0x slower  2 calls",
    ]
    told = json.loads(here("diff", "a.jsonl", "b.jsonl", "--json").out)
    assert (told["changes"][0]["seconds_a"], told["changes"][0]["seconds_b"]) == (2.0, 1.0)
    assert [(each["name"], each["calls"]) for each in told["latencies"]] == [
        ("slow", 1),
        ("echo", 2),
    ]
    same = here("diff", "a.jsonl", "b.jsonl", "--ignore", "$..text")
    assert (same.code, same.out) == (0, "")


def test_what_differs_is_told_place_by_place(here, tmp_path):
    for name, tools, word in (("a", ("echo", "add"), "dawn"), ("b", ("echo", "now"), "dusk")):
        with recording(tmp_path / f"{name}.jsonl") as studio:
            handshake(studio, tools)
            studio.tool(2, "echo", word)
            studio.tool(3, name, "x", n=1)
            studio.call(4, "x", error={"code": -1, "message": "no"} if name == "b" else None)
    ran = here("diff", "a.jsonl", "b.jsonl")
    assert ran.code == 1
    assert ran.out.splitlines() == [
        "add: the tool was removed",
        "now: the tool was added",
        "tools/call echo: the answer differs  (6/6)",
        "    $.result.content[0].text",
        '      A  "dawn"',
        '      B  "dusk"',
        "tools/call a: only in A  (8)",
        '    {"name":"a","arguments":{"n":1}}',
        "x: result in A, error -1 in B  (10/10)",
        "    $.result",
        "      A  {}",
        "      B  (nothing)",
        "    $.error",
        "      A  (nothing)",
        '      B  {"code":-1,"message":"no"}',
        "tools/call b: only in B  (8)",
        '    {"name":"b","arguments":{"n":1}}',
    ]
    assert ran.err.startswith("6 differences.\nLatencies")
    ignored = here("diff", "a.jsonl", "b.jsonl", "--ignore", "$..text", "--json")
    assert len(json.loads(ignored.out)["changes"]) == 5


def test_texts_that_are_long_the_same_are_shown_where_they_begin_to_differ(here, tmp_path):
    for name in "ab":
        with recording(tmp_path / f"{name}.jsonl") as studio:
            studio.tool(1, "echo", "the same " * 500 + f"until {name}")
    lines = here("diff", "a.jsonl", "b.jsonl").out.splitlines()
    assert lines[2:] == ['      A  …"the same until a"', '      B  …"the same until b"']
