"""Arguments and results against the schemas the server gave."""

from __future__ import annotations

from typing import Any

import pytest

from folkmoot.core import errors as e
from folkmoot.core.verdict import CONTINUE, Mock, Verdict
from tests.proxy.rules.support import TO_SERVER, Way, call, refusal, request, used

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
    assert verdict.result["isError"] is True
    return str(verdict.result["content"][0]["text"])


def test_a_wrong_call_is_answered_with_what_is_wrong_so_that_a_model_can_try_again():
    checked = way()
    assert checked.judge(call("read", {"path": "/x", "n": 2})).verdict is CONTINUE
    told = said(checked.judge(call("read", {"path": 5, "n": 0, "m": 1})).verdict)
    assert told.startswith("The arguments of read do not match its schema: ")
    assert 'path: 5 is not of type "string"' in told
    assert "n: 0 is less than the minimum of 1" in told
    assert "'m' was unexpected" in told
    assert '"path" is a required property' in said(checked.judge(call("read")).verdict)


def test_a_result_that_breaks_the_servers_own_promise_does_not_reach_the_client():
    checked = way()

    def answered(result: Any) -> Verdict:
        return checked.asked(call("add"), result).verdict

    assert answered({"content": [], "structuredContent": {"path": "/x"}}) is CONTINUE
    for wrong in ({"content": [], "structuredContent": {"path": 1}}, {"content": []}):
        assert isinstance(refusal(checked.asked(call("add"), wrong)), e.ServerAnswerInvalid)
    assert answered({"content": [], "isError": True}) is CONTINUE
    assert answered({"resultType": "input_required"}) is CONTINUE
    assert checked.asked(call("read", {"path": "/x"}), {"content": []}).verdict is CONTINUE


def test_it_learns_whatever_its_conditions_say_and_checks_only_what_they_say():
    checked = way(when='tool = "read", session = "s1"')
    assert isinstance(checked.judge(call("read", {"path": 1})).verdict, Mock)
    checked.asked(request("tools/list"), {"tools": TOOLS}, "s2")
    assert checked.judge(call("read", {"path": 1}), TO_SERVER, "s2").verdict is CONTINUE
    assert checked.asked(call("add"), {"content": []}).verdict is CONTINUE


def test_each_session_goes_by_its_own_list_and_a_later_page_adds_to_it():
    checked = way()
    assert checked.judge(call("read", {}), TO_SERVER, "other").verdict is CONTINUE
    more = [{"name": "write", "inputSchema": OBJECT}]
    checked.asked(request("tools/list", {"cursor": "2"}), {"tools": more})
    for tool in ("write", "read"):
        assert said(checked.judge(call(tool, {})).verdict)


def test_calls_of_tools_that_were_never_listed_pass_or_not_as_asked():
    assert way().judge(call("nothing")).verdict is CONTINUE
    strict = way('unlisted = "block"')
    assert said(strict.judge(call("nothing")).verdict) == "There is no tool nothing."
    assert strict.judge(call("nothing"), TO_SERVER, "unknown").verdict is CONTINUE


def test_each_half_can_be_left_out():
    assert way("arguments = false").judge(call("read", {})).verdict is CONTINUE
    assert way("results = false").asked(call("add"), {"content": []}).verdict is CONTINUE


def test_what_is_changed_later_is_checked_again():
    text = used("schema-check") + (
        '[[rule]]\nname = "breaks"\nwhen = { type = "request", method = "tools/call" }\n'
        'action = "modify"\nset = { "$.params.arguments.path" = 5 }\n'
    )
    checked = Way(text)
    checked.asked(request("tools/list"), {"tools": TOOLS})
    ruling = checked.judge(call("read", {"path": "/x"}))
    assert (type(ruling.verdict), ruling.by) == (Mock, "it")


@pytest.mark.parametrize("schema", [{"$ref": "http://127.0.0.1:9/schema"}, {"type": 5}, 7])
def test_a_call_of_a_tool_whose_schema_cannot_be_used_passes(schema):
    checked = way(tools=[{"name": "x", "inputSchema": schema}])
    assert checked.judge(call("x", {"a": 1})).verdict is CONTINUE
