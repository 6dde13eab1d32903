"""Two tapes side by side."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec import UNSET
from msgspec.structs import replace

from folkmoot.proxy.redaction import TapeRedactor
from folkmoot.proxy.tape import follow_lines
from folkmoot.proxy.tape.compare import AnswerChange, ComparedTape, compare
from folkmoot.proxy.tape.diff import Difference
from tests.proxy.tape.studio import TO_SERVER, Studio, conversation, handshake, recording

Record = Callable[[Studio], object]
Changes = Callable[..., list[AnswerChange]]
Keys = tuple[TapeRedactor | None, TapeRedactor | None]


@pytest.fixture
def changes(tmp_path: Path) -> Changes:
    """What differs between two tapes that are recorded for it."""

    def differ(
        a: Record, b: Record, ignore: tuple[str, ...] = (), keys: Keys = (None, None)
    ) -> list[AnswerChange]:
        recordings = []
        for name, record, key in zip("ab", (a, b), keys, strict=True):
            path = tmp_path / f"{name}.jsonl"
            path.unlink(missing_ok=True)
            with recording(path, redactor=key) as studio:
                record(studio)
            recordings.append(ComparedTape(follow_lines(path)))
        return list(compare(*recordings, ignore))

    return differ


def test_a_tape_is_the_same_as_itself(tmp_path):
    path = conversation(tmp_path / "a.jsonl")
    assert list(compare(ComparedTape(follow_lines(path)), ComparedTape(follow_lines(path)))) == []


def test_ids_tokens_times_and_the_order_of_answers_do_not_count(changes):
    def a(studio: Studio) -> None:
        params = {"name": "echo", "_meta": {"progressToken": 1}}
        studio.call(1, "tools/call", params, result={"n": 1}, took=0.1)
        studio.call(2, "ping")

    def b(studio: Studio) -> None:
        studio.wait(3)
        studio.say(TO_SERVER, {"id": "x", "method": "ping"})
        params = {"name": "echo", "_meta": {"progressToken": "other"}}
        studio.call("y", "tools/call", params, result={"n": 1}, took=2)
        studio.say(TO_SERVER.reverse(), {"id": "x", "result": {}})

    assert changes(a, b) == []


def test_an_answer_that_differs_is_told_with_its_places(changes):
    def told(word: str) -> Record:
        return lambda studio: studio.tool(1, "echo", f'{{"at": "{word}", "x": 1}}')

    place = "$.result.content[0].text.at"
    (change,) = changes(told("dawn"), told("dusk"))
    assert change.seconds_a == change.seconds_b == pytest.approx(0.01)
    assert replace(change, seconds_a=None, seconds_b=None) == AnswerChange(
        "answer", "tools/call", "echo", 1, 1, "result", "result",
        (Difference(place, "dawn", "dusk"),),
    )  # fmt: skip
    assert changes(told("dawn"), told("noon"), (place,)) == []


def test_of_equal_calls_the_first_belongs_to_the_first(changes):
    def counts(*words: str) -> Record:
        return lambda studio: [studio.tool(n, "next", word) for n, word in enumerate(words)]

    (change,) = changes(counts("1", "2", "3"), counts("1", "2", "4"))
    assert (change.a, change.b) == (5, 5)


def test_a_call_that_ends_otherwise_is_told_as_that(changes):
    def error(code: int) -> Record:
        return lambda studio: studio.call(1, "x", error={"code": code, "message": "no"})

    def outcomes(a: Record, b: Record) -> list[tuple[str, str, str]]:
        return [(c.what, c.outcome_a, c.outcome_b) for c in changes(a, b)]

    def result(studio: Studio) -> None:
        studio.call(1, "x")

    def failed(studio: Studio) -> None:
        studio.call(1, "x", result={"isError": True})

    def silence(studio: Studio) -> None:
        studio.say(TO_SERVER, {"id": 1, "method": "x"})

    for a, b, words in (
        (result, error(-1), ("result", "error -1")),
        (error(-1), error(-2), ("error -1", "error -2")),
        (result, failed, ("result", "tool error")),
        (result, silence, ("result", "no answer")),
    ):
        assert outcomes(a, b) == [("outcome", *words)]


def test_calls_on_one_tape_only_are_told(changes):
    def a(studio: Studio) -> None:
        studio.tool(1, "echo", "x", n=1)
        studio.tool(2, "echo", "x", n=2)

    def b(studio: Studio) -> None:
        studio.tool(1, "echo", "x", n=3)
        studio.tool(2, "add", "x", n=1)
        studio.tool(3, "echo", "x", n=4)

    assert [(c.what, c.name, c.a, c.b, c.params["arguments"]) for c in changes(a, b)] == [
        ("only_a", "echo", 1, None, {"n": 1}),
        ("only_a", "echo", 3, None, {"n": 2}),
        ("only_b", "echo", None, 1, {"n": 3}),
        ("only_b", "add", None, 3, {"n": 1}),
        ("only_b", "echo", None, 5, {"n": 4}),
    ]


def test_the_only_call_of_its_kind_with_other_arguments_is_still_the_same_call(changes):
    found = changes(lambda s: s.tool(1, "echo", "x", n=1), lambda s: s.tool(1, "echo", "y", n=2))
    assert [(change.what, change.differences) for change in found] == [
        ("arguments", (Difference("$.params.arguments.n", 1, 2),)),
        ("answer", (Difference("$.result.content[0].text", "x", "y"),)),
    ]


def test_tools_that_came_went_or_changed_are_told_once_each(changes):
    def b(studio: Studio) -> None:
        handshake(studio, ("echo", "now"))

    found = [(c.what, c.name, c.differences) for c in changes(handshake, b)]
    assert found == [("tool_removed", "add", ()), ("tool_added", "now", ())]

    def c(studio: Studio) -> None:
        tools = [{"name": "echo", "inputSchema": {"type": "object"}, "title": "Echo"},
                 {"name": "add", "inputSchema": {"type": "object"}}]  # fmt: skip
        studio.call(1, "tools/list", result={"tools": tools})

    (change, *rest) = changes(c, lambda s: s.call(1, "tools/list", result={"tools": [
        {"name": "echo", "inputSchema": {"type": "object"}},
        {"name": "add", "inputSchema": {"type": "object"}}]}))  # fmt: skip
    assert rest == []
    assert (change.what, change.differences) == (
        "tool_changed", (Difference("$.title", "Echo", UNSET),),
    )  # fmt: skip


def test_tapes_that_were_redacted_with_other_keys_can_be_compared(changes):
    def says(token: str) -> Record:
        return lambda s: s.tool(1, "login", f"welcome, Bearer {token}", token=token)

    token, other = "ghp_" + "a" * 36, "ghp_" + "b" * 36
    one, two = TapeRedactor(b"1" * 32), TapeRedactor(b"2" * 32)
    assert changes(says(token), says(token), keys=(one, two)) == []
    assert changes(says(token), says(token), keys=(one, one)) == []
    assert changes(says(token), says(other), keys=(one, one)) != []


def test_a_redacted_tape_is_the_same_as_the_one_it_was_made_from(changes):
    def says(studio: Studio) -> None:
        for number, letter in enumerate("abc"):
            token = "ghp_" + letter * 36
            studio.tool(number, "login", f"welcome, Bearer {token}", token=token)

    assert changes(says, says, keys=(None, TapeRedactor(b"1" * 32))) == []
    assert changes(says, says, keys=(TapeRedactor(b"1" * 32), None)) == []
