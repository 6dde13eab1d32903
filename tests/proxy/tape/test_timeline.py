"""The timeline of a tape: what belongs to what, what each message says, and which are wanted."""

from __future__ import annotations

from typing import Any

import pytest

from folkmoot.core import errors as e
from folkmoot.core.envelope import MessageDirection
from folkmoot.proxy.tape import follow_lines, summaries, timeline
from folkmoot.proxy.tape.timeline import MessageFilter, Moment, grouped, moments
from tests.proxy.tape.studio import TO_SERVER, conversation, recording


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> list[Moment]:
    path = conversation(tmp_path_factory.mktemp("tapes") / "a.jsonl")
    return list(moments(follow_lines(path)))


def seqs(found: Any) -> list[int]:
    return [moment.seq for moment in found]


def test_every_message_is_told_once_in_order_and_an_answer_with_its_request(told):
    assert seqs(told) == list(range(1, 21))
    assert [round(moment.at, 3) for moment in told[:3]] == [0, 0.213, 0.213]
    slow, sampled = told[11], told[10]
    assert (slow.method, slow.name, slow.answer.request) == ("tools/call", "slow", 8)
    assert slow.answer.seconds == pytest.approx(1.5)
    assert (sampled.method, sampled.from_client) == ("sampling/createMessage", True)
    assert seqs(moment for moment in told if moment.failed) == [14, 16, 17, 18]


def test_an_answer_to_nothing_is_told_as_that(tmp_path):
    with recording(tmp_path / "t.jsonl") as studio:
        studio.say(TO_SERVER, {"id": 9, "result": {}})
        studio.say(TO_SERVER, {"id": 10, "result": {}})
    lone = list(moments(follow_lines(tmp_path / "t.jsonl")))
    assert [(moment.shape, moment.method) for moment in lone] == [("response", "")] * 2


def test_an_answer_is_not_held_back_where_nothing_follows_for_now(tmp_path):
    with recording(tmp_path / "t.jsonl", end=False) as studio:
        studio.say(TO_SERVER, {"id": 9, "result": {}})
    header, line = follow_lines(tmp_path / "t.jsonl")

    def live() -> Any:
        yield header
        yield line
        yield None
        raise AssertionError("it was to be told before anything else came")

    assert next(moments(live())).seq == 1


def test_grouping_puts_each_answer_behind_its_request(told):
    assert [seqs(group) for group in grouped(told)] == [
        [1, 2], [3], [4, 5], [6, 7], [8, 12], [9], [10, 11], [13, 14], [15, 16], [17, 18], [19],
        [20],
    ]  # fmt: skip


def test_grouping_waits_for_no_answer_without_bound(told, monkeypatch):
    monkeypatch.setattr(timeline, "WINDOW", 2)
    assert [8] in [seqs(group) for group in grouped(told)]
    assert sorted(seq for group in grouped(told) for seq in seqs(group)) == seqs(told)


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({"methods": ["tools/list"]}, [4, 5]),
        ({"methods": ["notifications/*", "ping"]}, [3, 9, 19, 20]),
        ({"kinds": ["mcp.request.tools/call:*"]}, [6, 8, 13, 15, 17]),
        ({"kinds": ["mcp.request.tools/call", "!mcp.*.tools/call:r*"]}, [6, 8, 13, 15]),
        ({"kinds": ["mcp.response.tools/call:echo"]}, [7]),
        ({"kinds": ["!mcp.request", "!mcp.response"]}, [3, 9, 19]),
        ({"direction": MessageDirection.SERVER_TO_CLIENT, "last": 10}, [2, 5, 7, 9, 10]),
        ({"text": "HELLO"}, [6, 7]),
        ({"errors": True}, [14, 16, 17, 18]),
        ({"session": "5f", "last": 4}, [3, 4]),
        ({"session": "77"}, []),
        ({"first": 19}, [19, 20]),
        ({"first": 6, "last": 8, "methods": ["tools/*"], "text": "echo"}, [6, 7]),
    ],
)
def test_what_is_wanted_is_found(told, wanted, found):
    assert seqs(filter(MessageFilter.of(**wanted).meets, told)) == found


def test_text_is_found_however_its_letters_are_escaped(tmp_path):
    with recording(tmp_path / "t.jsonl") as studio:
        studio.say(TO_SERVER, {"method": "x", "params": {"a": "Ångström"}})
    assert b"\\u00c5" in (tmp_path / "t.jsonl").read_bytes()
    found = moments(follow_lines(tmp_path / "t.jsonl"))
    assert seqs(filter(MessageFilter.of(text="ångström").meets, found)) == [1]


def test_what_is_no_pattern_of_kinds_is_refused():
    with pytest.raises(e.CapabilityError):
        MessageFilter.of(kinds=["mcp..tools"])


IMAGE = {"type": "image", "mimeType": "image/png", "data": "x" * 400}


@pytest.mark.parametrize(
    ("method", "result", "said"),
    [
        ("tools/list", {"tools": [{"name": "a"}, {"name": "b"}]}, "2 tools: a, b"),
        ("tools/list", {"tools": [], "nextCursor": "x"}, "0 tools"),
        ("resources/list", {"resources": [{"uri": "a://b"}]}, "1 resource: a://b"),
        ("tools/call", {"content": [{"type": "text", "text": "hi"}, IMAGE]},
         "hi [image image/png, about 300 bytes]"),
        ("tools/call", {"content": [], "structuredContent": {"n": 1}}, '{"n":1}'),
        ("resources/read", {"contents": [{"uri": "a", "text": "words"}]}, "words"),
        ("prompts/get", {"messages": [{"role": "user", "content": {"type": "text", "text": "x"}}]},
         "user: x"),
        ("elicitation/create", {"action": "accept", "content": {"a": 1}}, 'accept {"a":1}'),
        ("unheard/of", {"a": [1, {"b": 2}], "_meta": {"x": 1}}, '{"a":[1,{"b":2}]}'),
        ("ping", {}, ""),
    ],
)  # fmt: skip
def test_a_result_is_told_in_a_line(method, result, said):
    assert summaries.result(method, result) == said


@pytest.mark.parametrize(
    ("method", "params", "said"),
    [
        ("tools/call", {"name": "a", "arguments": {"x": 1}}, '{"x":1}'),
        ("notifications/progress", {"progress": 3, "total": 10, "message": "m"}, "3/10 m"),
        ("notifications/progress", {"progress": 0}, "0"),
        ("notifications/cancelled", {"requestId": 5, "reason": "late"}, "request 5: late"),
        ("notifications/message", {"level": "info", "data": {"a": 1}}, 'info: {"a":1}'),
        ("logging/setLevel", {"level": "debug"}, "debug"),
        ("unheard/of", [1, 2], "[1,2]"),
        ("ping", None, ""),
    ],
)
def test_a_call_is_told_in_a_line(method, params, said):
    assert summaries.call(method, params) == said


ODD: list[Any] = [None, 7, "x", [], [None], {}, {"content": 7}, {"content": [None, 7]},
                  {"tools": "x"}, {"messages": [3]}, {"arguments": 3}, {"clientInfo": []},
                  {"ref": 3}, {"name": {}}, {"contents": [{"blob": 3}]}]  # fmt: skip


@pytest.mark.parametrize(
    "method", sorted({*summaries._CALLS, *summaries._RESULTS, *summaries._NAMES})
)
def test_nothing_in_a_message_keeps_it_from_being_told(method):
    for odd in ODD:
        told = [tell(method, odd) for tell in (summaries.call, summaries.result, summaries.name_of)]
        assert {type(each) for each in (*told, summaries.error(odd))} == {str}


def test_what_is_told_of_a_huge_message_is_short():
    huge = {"arguments": {str(n): ["x" * 10_000] * 100 for n in range(100)}}
    assert len(summaries.call("tools/call", huge)) < 1_000_000
    deep: Any = []
    for _ in range(100):
        deep = [deep]
    assert summaries.compact(deep) == '[[[[["…"]]]]]'
