"""How often, and how large."""

from __future__ import annotations

import msgspec

from folkmoot.core import errors as e
from folkmoot.core.envelope import MessageEnvelope
from folkmoot.core.message import encode_message
from folkmoot.core.policy import Principal
from folkmoot.core.verdict import Block
from folkmoot.proxy.interceptors.limits import MOST_KEYS
from tests.proxy.rules.support import (
    TO_CLIENT,
    TO_SERVER,
    Clock,
    Way,
    answer,
    at_once,
    blocks,
    call,
    envelope,
    refusal,
    request,
    used,
)


def test_a_burst_passes_and_then_so_many_a_minute():
    clock = Clock()
    way = Way(used("rate-limit", "per_minute = 6, burst = 2"), clock)
    assert [blocks(way, call("x")) for _ in range(4)] == [False, False, True, True]
    error = refusal(way.judge(call("x")))
    assert isinstance(error, e.RateLimited)
    assert error.message == "Rate limit exceeded. Try again in 10 seconds."
    assert error.data == {"retry_after": 10}
    clock.seconds += 9.5
    assert "1 second." in refusal(way.judge(call("x"))).message
    clock.seconds += 0.5
    assert [blocks(way, call("x")) for _ in range(2)] == [False, True]
    clock.seconds += 3600
    assert [blocks(way, call("x")) for _ in range(3)] == [False, False, True]


def test_sessions_and_tools_are_counted_apart_as_asked():
    def passed(by: str) -> list[bool]:
        way = Way(used("rate-limit", f"per_minute = 1, by = {by}"))
        asked = [("a", "s1"), ("b", "s1"), ("a", "s2"), ("a", "s1")]
        return [not blocks(way, call(tool), TO_SERVER, session) for tool, session in asked]

    assert passed('["session"]') == [True, False, True, False]
    assert passed('["tool"]') == [True, True, False, False]
    assert passed('["session", "tool"]') == [True, True, True, False]
    assert passed("[]") == [True, False, False, False]


def test_callers_without_a_session_are_counted_apart():
    """Otherwise one of them could use up what all others may ask for."""
    way = Way(used("rate-limit", "per_minute = 1"))

    def passed(account: str) -> bool:
        asked = envelope(call("a"), session=None)
        context = msgspec.structs.replace(asked.context, caller=Principal(account, account))
        ruling = at_once(way.chain.judge(MessageEnvelope(asked.message, context)))
        return not isinstance(ruling.verdict, Block)

    assert [passed(who) for who in ("ann", "ann", "bob", "bob")] == [True, False, True, False]


def test_answers_are_never_too_many_and_keys_are_bounded():
    way = Way(used("rate-limit", "per_minute = 1"))
    way.judge(call("x"))
    assert not blocks(way, answer({}), TO_CLIENT)
    for number in range(MOST_KEYS + 10):
        way.judge(request("ping", number=number), TO_SERVER, f"s{number}")
    assert len(way.rules.ruleset.rules[0].action._buckets) == MOST_KEYS


def test_a_message_that_is_too_large_is_stopped_as_it_came_and_as_it_is_changed():
    small, large = call("x"), call("x", {"text": "y" * 300})
    way = Way(used("size-limit", "bytes = 200", 'method = "tools/call"'))
    assert not blocks(way, small)
    error = refusal(way.judge(large))
    assert isinstance(error, e.MessageTooLarge)
    assert "(tools/call)" in error.message
    assert not blocks(way, request("ping", {"text": "y" * 300}))
    grown = Way(
        used("size-limit", "bytes = 200")
        + '[[rule]]\nname = "grows"\naction = "modify"\n'
        + f'set = {{ "$.params.arguments.more" = "{"y" * 300}" }}\n'
    )
    assert grown.judge(small).by == "it"


def test_what_a_message_weighs_is_what_leaves():
    message = call("x", {"text": "é" * 100})
    size = len(encode_message(message))
    assert not blocks(Way(used("size-limit", f"bytes = {size}")), message)
    assert blocks(Way(used("size-limit", f"bytes = {size - 1}")), message)
