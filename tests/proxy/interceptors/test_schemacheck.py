"""Arguments and results against the schemas the server gave."""

from __future__ import annotations

import time
from typing import Any

import pytest

from folkmoot.core.errors import ServerAnswerInvalid
from folkmoot.core.verdict import CONTINUE, Block, Mock, Verdict
from folkmoot.jsonschemas import MOST_KEPT, Schema, Schemas, is_quick
from tests.proxy.rules.support import TO_SERVER, Way, call, request, used

OBJECT = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "n": {"type": "integer", "minimum": 1}},
    "required": ["path"],
    "additionalProperties": False,
}
TOOLS = [
    {"name": "read", "inputSchema": OBJECT},
    {"name": "add", "inputSchema": {"type": "object"}, "outputSchema": OBJECT},
]


def way(options: str = "", when: str = "", tools: Any = TOOLS) -> Way:
    made = Way(used("schema-check", options, when))
    made.asked(request("tools/list"), {"tools": tools})
    return made


def said(verdict: Verdict) -> str:
    assert isinstance(verdict, Mock)
    assert verdict.result["isError"] is True
    return str(verdict.result["content"][0]["text"])


def test_a_wrong_call_is_answered_with_what_is_wrong_so_that_a_model_can_try_again() -> None:
    checked = way()
    assert checked.judge(call("read", {"path": "/x", "n": 2})).verdict is CONTINUE
    told = said(checked.judge(call("read", {"path": 5, "n": 0, "m": 1})).verdict)
    assert told.startswith("The arguments of read do not match its schema: ")
    assert "path: 5 is not of type 'string'" in told
    assert "n: 0 is less than the minimum of 1" in told
    assert "'m' was unexpected" in told
    assert "'path' is a required property" in said(checked.judge(call("read")).verdict)


def test_a_result_that_breaks_the_servers_own_promise_does_not_reach_the_client() -> None:
    checked = way()

    def answered(result: Any) -> Verdict:
        return checked.asked(call("add"), result).verdict

    assert answered({"content": [], "structuredContent": {"path": "/x"}}) is CONTINUE
    for wrong in ({"content": [], "structuredContent": {"path": 1}}, {"content": []}):
        verdict = answered(wrong)
        assert isinstance(verdict, Block)
        assert isinstance(verdict.error, ServerAnswerInvalid)
    assert answered({"content": [], "isError": True}) is CONTINUE
    assert answered({"resultType": "input_required"}) is CONTINUE
    assert checked.asked(call("read", {"path": "/x"}), {"content": []}).verdict is CONTINUE


def test_it_learns_whatever_its_conditions_say_and_checks_only_what_they_say() -> None:
    checked = way(when='tool = "read", session = "s1"')
    assert isinstance(checked.judge(call("read", {"path": 1})).verdict, Mock)
    checked.asked(request("tools/list"), {"tools": TOOLS}, "s2")
    assert checked.judge(call("read", {"path": 1}), TO_SERVER, "s2").verdict is CONTINUE
    assert checked.asked(call("add"), {"content": []}).verdict is CONTINUE


def test_each_session_goes_by_its_own_list_and_a_later_page_adds_to_it() -> None:
    checked = way()
    assert checked.judge(call("read", {}), TO_SERVER, "other").verdict is CONTINUE
    more = [{"name": "write", "inputSchema": OBJECT}]
    checked.asked(request("tools/list", {"cursor": "2"}), {"tools": more})
    assert isinstance(checked.judge(call("write", {})).verdict, Mock)
    assert isinstance(checked.judge(call("read", {})).verdict, Mock)


def test_calls_of_tools_that_were_never_listed_pass_or_not_as_asked() -> None:
    assert way().judge(call("nothing")).verdict is CONTINUE
    strict = way('unlisted = "block"')
    assert said(strict.judge(call("nothing")).verdict) == "There is no tool nothing."
    assert strict.judge(call("nothing"), TO_SERVER, "unknown").verdict is CONTINUE


def test_each_half_can_be_left_out() -> None:
    assert way("arguments = false").judge(call("read", {})).verdict is CONTINUE
    assert way("results = false").asked(call("add"), {"content": []}).verdict is CONTINUE


def test_what_is_changed_later_is_checked_again() -> None:
    text = used("schema-check") + (
        '[[rule]]\nname = "breaks"\nwhen = { type = "request", method = "tools/call" }\n'
        'action = "modify"\nset = { "$.params.arguments.path" = 5 }\n'
    )
    checked = Way(text)
    checked.asked(request("tools/list"), {"tools": TOOLS})
    ruling = checked.judge(call("read", {"path": "/x"}))
    assert isinstance(ruling.verdict, Mock)
    assert ruling.by == "it"


def exploding(levels: int) -> dict[str, Any]:
    """A schema that takes twice as long with each level."""
    defs: dict[str, Any] = {
        f"l{n}": {"allOf": [{"$ref": f"#/$defs/l{n + 1}"}] * 2} for n in range(levels)
    }
    return {"$ref": "#/$defs/l0", "$defs": {**defs, f"l{levels}": {"type": "object"}}}


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (exploding(40), {}),
        ({"properties": {"x": {"pattern": "^(a+)+$"}}}, {"x": "a" * 60 + "!"}),
        ({"properties": {"x": {"pattern": "a*a*a*a*a*b"}}}, {"x": "a" * 1900}),
        (
            {"patternProperties": {"^(a|a)+$": {}}, "additionalProperties": False},
            {"a" * 60 + "!": 1},
        ),
        ({"patternProperties": {"a*b": {}}, "additionalProperties": False}, {"a" * 300_000: 1}),
        ({"properties": {"x": {"uniqueItems": True}}}, {"x": [{"n": n} for n in range(20_000)]}),
        ({"$ref": "http://127.0.0.1:9/schema"}, {}),
        ({"$ref": "#/nowhere"}, {}),
        ({"$ref": "#"}, {}),
        ({"type": 5}, {}),
        ({"$schema": "urn:unknown", "properties": 3}, {}),
        (
            {"allOf": [{"$schema": "http://json-schema.org/draft-07/schema#", **exploding(40)}]},
            {},
        ),
    ],
)
def test_no_schema_makes_a_check_slow_or_fail(schema: Any, value: Any) -> None:
    checked = way(tools=[{"name": "x", "inputSchema": schema}])
    began = time.process_time()
    assert checked.judge(call("x", value)).verdict is CONTINUE
    assert time.process_time() - began < 5


def test_a_value_that_breaks_the_library_does_not_switch_the_check_off() -> None:
    schema = Schema({"properties": {"n": {"multipleOf": 1e-300}, "s": {"type": "string"}}})
    schema.faults({"n": 1e308})
    assert schema.faults({"s": 1})


def test_dialects_are_heeded() -> None:
    old = {"$schema": "http://json-schema.org/draft-04/schema#"}
    strictly = {**old, "properties": {"n": {"maximum": 3, "exclusiveMaximum": True}}}
    assert Schema(strictly).faults({"n": 3})
    assert not Schema(strictly).faults({"n": 2})


def test_patterns_that_take_little_time_are_applied() -> None:
    assert is_quick("^[a-z]+-[0-9]{2,4}$")
    assert not any(map(is_quick, ["(a+)+", r"(a)\1", "(?=a)b", "a*b*c*", "x" * 300]))
    checked = Schema({"properties": {"x": {"pattern": "^[a-z]+$"}}})
    assert checked.faults({"x": "A"})
    assert not checked.faults({"x": "a"})


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"pattern": "^" + "a?" * 40 + "a" * 40 + "$"}, "a" * 40),
        ({"pattern": "^" + "(a|aa)" * 30 + "$"}, "a" * 45 + "b"),
        ({"items": {"pattern": "b*b$"}}, ["b" * 1_900 + "c"] * 9_000),
        ({"patternProperties": {"^a*a*$": {}}}, {"a" * 1_900 + str(n): 1 for n in range(900)}),
        ({"items": {"uniqueItems": True}}, [[{"a": n} for n in range(290)]] * 3_000),
        ({"items": {"enum": list(range(9_000))}}, [8_999] * 9_900),
    ],
)
def test_no_schema_and_value_together_take_long(schema: Any, value: Any) -> None:
    began = time.process_time()
    Schema(schema).faults(value)
    assert time.process_time() - began < 5


def test_one_schema_in_many_sessions_is_kept_once_and_schemas_are_bounded() -> None:
    schemas = Schemas()
    assert schemas.of({"type": "object"}) is schemas.of({"type": "object"})
    assert schemas.of(None) is None
    assert schemas.of({"description": "x" * 300_000}) is None
    for number in range(MOST_KEPT + 10):
        schemas.of({"const": number})
    assert len(schemas._kept) == MOST_KEPT
