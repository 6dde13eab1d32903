"""What a rule does by itself."""

from __future__ import annotations

from folkmoot.core import errors as e
from folkmoot.core.message import ErrorObject, Response, encode_message
from folkmoot.core.verdict import CONTINUE, Block, Continue, Delay, Hold, Mock
from tests.proxy.rules.support import (
    TO_CLIENT,
    Way,
    answer,
    call,
    notice,
    refusal,
    request,
    stopped_by,
)


def rule(action: str, more: str = "", when: str = "", name: str = "it") -> str:
    return f'[[rule]]\nname = "{name}"\nwhen = {{ {when} }}\naction = "{action}"\n{more}\n'


def test_block_stops_with_its_words_and_its_number():
    error = refusal(Way(rule("block", 'message = "Not here."\ncode = -32042')).judge(call("x")))
    assert isinstance(error, e.BlockedByInterceptor)
    data = {"code": "blocked", "rule": "it"}
    assert error.as_jsonrpc() == {"code": -32042, "message": "Not here.", "data": data}
    assert e.BlockedByInterceptor.jsonrpc == -32003


def test_mock_answers_requests_and_nothing_else():
    way = Way(rule("mock", "result = { tools = [] }"))
    assert way.judge(call("x")).verdict == Mock(result={"tools": []})
    assert isinstance(way.judge(notice("n")).verdict, Continue)
    assert isinstance(way.judge(answer({}), TO_CLIENT).verdict, Continue)
    failing = Way(rule("mock", 'error = { code = -1, message = "Down.", data = 7 }'))
    assert failing.judge(call("x")).verdict == Mock(error=ErrorObject(-1, "Down.", 7))


def test_modify_sets_and_removes_and_keeps_everything_else():
    way = Way(
        rule(
            "modify",
            'remove = ["$.params.arguments.secret", "$.params.arguments.list[*].id"]\n'
            '[rule.set]\n"$.params.arguments.dry_run" = true\n"$.params._meta.by" = "proxy"\n',
        )
    )
    given = {"secret": 1, "list": [{"id": 1, "a": 2}, {"a": 3}], "other": "é"}
    ruling = way.judge(call("x", given))
    assert (ruling.changed, ruling.by) == (True, "it")
    assert ruling.envelope.message.params == {
        "name": "x",
        "arguments": {"list": [{"a": 2}, {"a": 3}], "other": "é", "dry_run": True},
        "_meta": {"by": "proxy"},
    }
    assert b"dry_run" in encode_message(ruling.envelope.message)


def test_modify_touches_only_what_a_message_has():
    way = Way(rule("modify", 'set = { "$.params.x" = 1, "$.result.y" = 2, "$.error.data" = 3 }'))
    assert way.judge(request("ping")).envelope.message.params == {"x": 1}
    assert way.judge(answer({"z": 0}), TO_CLIENT).envelope.message.result == {"z": 0, "y": 2}
    failed = Response(id=1, error=ErrorObject(-1, "No."))
    assert way.judge(failed, TO_CLIENT).envelope.message.error == ErrorObject(-1, "No.", 3)
    unchanged = answer({"y": 2})
    same = Way(rule("modify", 'remove = ["$.result.nothing"]')).judge(unchanged, TO_CLIENT)
    assert same.envelope.message.raw == unchanged.raw
    assert not same.changed


def test_delay_is_fixed_or_between_two_times():
    assert Way(rule("delay", "seconds = 1.5")).judge(call("x")).verdict == Delay(1.5)
    way = Way(rule("delay", "seconds = [0.5, 2]\nseed = 1"))
    drawn = [way.judge(call("x")).verdict.seconds for _ in range(20)]
    assert all(0.5 <= each <= 2 for each in drawn)
    assert len(set(drawn)) > 1


def test_hold_says_why_and_for_how_long():
    ruling = Way(rule("hold", 'reason = "Ask first."\nseconds = 60')).judge(call("x"))
    assert (ruling.verdict, ruling.by) == (Hold("Ask first.", 60), "it")


def test_continue_exempts_from_all_further_rules_also_when_they_look_again():
    text = (
        rule("continue", when='tool = "ok"', name="exempt")
        + rule("block", when='method = "tools/call"', name="all")
        + rule("modify", 'set = { "$.params.name" = "ok" }', 'tool = "x"', name="never")
    )
    way = Way(text)
    assert way.judge(call("ok")).verdict is CONTINUE
    assert isinstance(way.judge(call("other")).verdict, Block)


def test_rules_act_in_the_order_of_the_file_each_on_what_the_one_before_left():
    text = (
        rule("modify", 'set = { "$.params.arguments.n" = 1 }', name="first")
        + rule(
            "modify",
            'set = { "$.params.arguments.n" = 2 }',
            'path = "$.params.arguments.n", is = 1',
            name="second",
        )
        + rule("block", when='path = "$.params.arguments.n", is = 1', name="third")
    )
    ruling = Way(text).judge(call("x"))
    assert ruling.envelope.message.params["arguments"] == {"n": 2}
    assert (ruling.verdict, ruling.by) == (CONTINUE, "second")


def test_a_rewrite_is_held_against_the_rules_before_it():
    text = rule("block", when='tool = "delete"', name="no deletes") + rule(
        "modify", 'set = { "$.params.name" = "delete" }', name="careless"
    )
    assert stopped_by(Way(text).judge(call("read"))) == "no deletes"
