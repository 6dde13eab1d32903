"""All rules as one interceptor: found quickly, never fooled, whatever plugins do."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from folkmoot.core.envelope import MessageEnvelope
from folkmoot.core.message import Notification, Request, replace
from folkmoot.core.verdict import CONTINUE, Block, Delay, Modify, Verdict
from folkmoot.proxy.interceptors.base import Action, Means, MessageView
from folkmoot.proxy.rules.ruleset import MOST_KEYS, Plugin, Rule, RuleSet
from folkmoot.proxy.rules.when import compiled
from tests.harness import run
from tests.proxy.rules.support import (
    TO_CLIENT,
    TO_SERVER,
    Clock,
    Way,
    answer,
    at_once,
    call,
    envelope,
    notice,
    stopped_by,
)

MEANS = Means(Clock(), str)


class Asks(Action):
    """Notes which messages reach it, or for which of them a condition holds."""

    def __init__(self, condition: Any = None) -> None:
        self.seen: list[Any] = []
        self._condition = condition

    async def look(self, view: MessageView) -> Verdict:
        if self._condition is None or self._condition.holds(view):
            self.seen.append(view.message)
        return CONTINUE


def rule(name: str, when: dict[str, Any], action: Action) -> Rule:
    return Rule(name, {"name": name}, compiled(when, MEANS), action)


METHODS = ("tools/call", "tools/list", "ping", "notifications/x")
LEAVES = st.one_of(
    st.sampled_from((*METHODS, "tools/*", "*")).map(lambda it: {"method": it}),
    st.sampled_from(("client_to_server", "server_to_client")).map(lambda it: {"direction": it}),
    st.sampled_from(("request", "notification", "response")).map(lambda it: {"type": it}),
    st.sampled_from(("a", "b", "*")).map(lambda it: {"tool": it}),
    st.sampled_from(("mcp.request.*", "mcp.*.tools/call:a", "mcp.notification.*")).map(
        lambda it: {"kind": it}
    ),
    st.sampled_from(("s1", "s*", "x")).map(lambda it: {"session": it}),
    st.just({"path": "$.params.name", "is": "a"}),
)
CONDITIONS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map(lambda it: {"all": it}),
        st.lists(inner, min_size=1, max_size=3).map(lambda it: {"any": it}),
        inner.map(lambda it: {"not": it}),
    ),
    max_leaves=8,
)
MESSAGES: tuple[tuple[Any, Any], ...] = (
    (call("a"), TO_SERVER),
    (call("b"), TO_SERVER),
    (Request(id=2, method="ping"), TO_CLIENT),
    (Request(id=3, method="tools/list"), TO_SERVER),
    (Notification(method="notifications/x", params={"name": "a"}), TO_CLIENT),
    (answer({}), TO_CLIENT),
)


@given(st.lists(CONDITIONS, min_size=1, max_size=4))
def test_the_index_finds_exactly_the_rules_whose_conditions_hold(whens):
    """A rule that is found by index sees what it would see if each condition were asked whole."""
    found = [Asks() for _ in whens]
    asked = [Asks(compiled(when, MEANS)) for when in whens]
    rules = [rule(str(n), when, found[n]) for n, when in enumerate(whens)]
    whole = [rule(str(n), {}, each) for n, each in enumerate(asked)]
    sets = RuleSet(rules, str), RuleSet(whole, str)
    for message, way in MESSAGES:
        for each in sets:
            at_once(each.judge(envelope(message, way)))
    for one, other in zip(found, asked, strict=True):
        assert list(map(id, one.seen)) == list(map(id, other.seen))


def test_made_up_methods_do_not_fill_memory():
    way = Way('[[rule]]\nname = "x"\nwhen = { method = "ping" }\naction = "block"\n')
    for number in range(2 * MOST_KEYS):
        way.judge(notice(f"made/up-{number}"))
    assert len(way.rules.ruleset._program._buckets) <= MOST_KEYS


class Foreign:
    """An interceptor of someone else's."""

    name = "foreign"
    guards = False

    def __init__(self, word: Any) -> None:
        self._word = word

    async def intercept(self, envelope: MessageEnvelope[Any]) -> Verdict:
        if isinstance(self._word, Exception):
            raise self._word
        return self._word(envelope)


@pytest.mark.parametrize(
    "word",
    [
        lambda it: Modify(replace(it.message, method="tools/other")),
        lambda it: Modify(replace(it.message, id=7)),
        lambda it: Modify(Notification(method="tools/call")),
        lambda _: Modify(3),
        ValueError("inside"),
    ],
    ids=["method", "id", "type", "nonsense", "fails"],
)
def test_a_plugin_that_makes_another_message_or_fails_stops_it(word):
    rules = RuleSet([rule("theirs", {}, Plugin(Foreign(word)))], str)
    assert stopped_by(run(rules.judge(envelope(call("a"))))) == "theirs"


@pytest.mark.requirement("proxy.interceptors-see-context")
def test_a_plugin_sees_the_whole_envelope():
    seen: list[Any] = []
    rules = RuleSet(
        [rule("theirs", {}, Plugin(Foreign(lambda it: seen.append(it) or CONTINUE)))], str
    )
    came = envelope(call("a"))
    run(rules.judge(came))
    assert seen == [came]
    assert seen[0].context is came.context


def test_asked_for_one_word_alone_it_gives_the_last_one():
    def said(*words: Any) -> Verdict:
        rules = [rule(str(n), {}, Plugin(Foreign(word))) for n, word in enumerate(words)]
        return run(RuleSet(rules, str).intercept(envelope(call("a"))))

    assert said() is CONTINUE
    changed = said(lambda it: Modify(replace(it.message, params={"name": "b"})))
    assert changed.message.params == {"name": "b"}
    assert isinstance(said(lambda _: Delay(1.0)), Block)


def test_a_rule_file_with_a_thousand_rules_still_finds_the_one():
    text = "".join(
        f'[[rule]]\nname = "r{n}"\nwhen = {{ method = "m/{n}" }}\naction = "block"\n'
        for n in range(1_000)
    )
    way = Way(text)
    assert way.judge(notice("m/700")).by == "r700"
    assert way.judge(notice("m/1000")).verdict is CONTINUE
