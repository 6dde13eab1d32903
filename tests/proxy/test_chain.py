"""The chain: interceptors in their order, what they see, and what becomes of a message."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from folkmoot.core import errors as e
from folkmoot.core.envelope import MessageContext, MessageDirection, MessageEnvelope
from folkmoot.core.message import Notification, Request, replace
from folkmoot.core.session import SessionContext, SessionId
from folkmoot.core.timing import TimingContext
from folkmoot.core.transport import ConnectionInfo, SseMetadata, TransportContext
from folkmoot.core.verdict import CONTINUE, Block, Delay, Hold, Mock, Modify, Verdict
from folkmoot.proxy.chain import Chain, Ruling
from tests.harness import run
from tests.proxy.rules.support import (
    TO_CLIENT,
    TO_SERVER,
    answer,
    call,
    envelope,
    loaded,
    refusal,
    stopped_by,
)
from tests.relay.carriers import MemoryCarrier


class Says:
    """An interceptor that says what a function says, and remembers what it saw."""

    def __init__(self, word: Callable[[Any], Verdict], name: str = "says", guards: bool = False):
        self.word = word
        self.name = name
        self.guards = guards
        self.seen: list[MessageEnvelope[Any]] = []

    async def intercept(self, envelope: MessageEnvelope[Any]) -> Verdict:
        self.seen.append(envelope)
        return self.word(envelope.message)


def lets_pass(name: str = "passes", guards: bool = False) -> Says:
    return Says(lambda _: CONTINUE, name, guards)


def renames(tool: str, name: str = "renames") -> Says:
    return Says(lambda message: Modify(replace(message, params={"name": tool})), name)


def no(tool: str) -> Says:
    def word(message: Any) -> Verdict:
        refused = message.params["name"] == tool
        return Block(e.BlockedByInterceptor("No.")) if refused else CONTINUE

    return Says(word, "guard", guards=True)


def judged(chain: Chain, message: Any) -> Ruling:
    return run(chain.run(envelope(message)))


@pytest.mark.requirement("proxy.interceptors-see-context")
def test_an_interceptor_sees_the_whole_envelope_as_it_entered():
    connection = ConnectionInfo(connection_id="c1")
    metadata = SseMetadata(stream_id="st", event_id="e7", retry_after=3.0, last_event_id="e6")
    context = MessageContext(
        TimingContext(1.0, 2.0),
        TO_CLIENT,
        SessionContext(SessionId("abc")),
        TransportContext(metadata, connection),
        {"note": "kept"},
    )
    first, second = renames("other"), lets_pass()
    came = MessageEnvelope(call("read"), context)
    ruling = run(Chain([first, second]).run(came))
    assert first.seen == [came]
    assert first.seen[0].context is second.seen[0].context is ruling.envelope.context is context
    assert second.seen[0].message.params == {"name": "other"}


@pytest.mark.requirement("proxy.internal-not-forwarded")
async def test_a_message_made_by_an_interceptor_leaves_only_once_it_has_a_direction():
    client, server = (MemoryCarrier(way, TransportContext()) for way in (TO_SERVER, TO_CLIENT))
    ruling = await Chain([Says(lambda _: Mock(result={"made": True}))]).run(envelope(call("x")))
    made = envelope(answer(ruling.verdict.result), MessageDirection.INTERNAL)
    for end in (client, server):
        with pytest.raises(e.Misrouted, match="internal"):
            await end.send_envelope(made)
    await client.send_envelope(made.with_direction(TO_CLIENT))
    assert (len(client.heard), len(server.heard)) == (1, 0)


def test_a_message_nobody_changes_keeps_its_bytes_and_an_empty_chain_is_nothing():
    message = call("read")
    ruling = judged(Chain([lets_pass(), lets_pass()]), message)
    assert ruling.envelope.message.raw == message.raw
    assert (ruling.verdict, ruling.changed, ruling.by) == (CONTINUE, False, "")
    assert not Chain().interceptors


def test_a_copy_that_still_claims_the_old_bytes_loses_them():
    message = call("read")
    changed = Request(id=1, method="tools/call", params={"name": "other"}, raw=message.raw)
    ruling = judged(Chain([Says(lambda _: Modify(changed))]), message)
    assert ruling.envelope.message.raw is None
    assert ruling.changed


def test_the_first_who_stops_a_message_has_the_last_word():
    stops = Says(lambda _: Block(e.BlockedByInterceptor("Not today.")), "stops")
    after = lets_pass()
    assert stopped_by(judged(Chain([lets_pass(), stops, after]), call("read"))) == "stops"
    assert not after.seen


def test_what_is_changed_later_is_shown_to_guards_again():
    guard, other = no("delete"), lets_pass()
    ruling = judged(Chain([guard, other, renames("delete")]), call("read"))
    assert isinstance(ruling.verdict, Block)
    assert (ruling.by, len(guard.seen), len(other.seen)) == ("guard", 2, 1)
    assert judged(Chain([guard, renames("fine")]), call("read")).verdict is CONTINUE


def test_what_fails_or_makes_no_sense_stops_the_message(caplog):
    def fails(_: Any) -> Verdict:
        raise ValueError("secret inside")

    error = refusal(judged(Chain([Says(fails, "broken")]), call("read")))
    assert error.message == "broken failed, so the message was stopped."
    assert "an interceptor failed" in caplog.text
    for word in (lambda _: Mock(result={}), lambda _: Modify(None)):
        assert refusal(judged(Chain([Says(word)]), Notification(method="notifications/x")))


async def test_a_message_that_waits_is_handed_back_and_goes_on_where_it_was():
    first, after = lets_pass(), renames("other")
    chain = Chain([first, Says(lambda _: Delay(0.001), "slow"), after])
    ruling = await chain.judge(envelope(call("read")))
    assert ruling.waits
    assert (ruling.by, len(after.seen)) == ("slow", 0)
    ruling = await chain.settle(ruling)
    assert ruling.envelope.message.params == {"name": "other"}
    assert (len(first.seen), len(after.seen)) == (1, 1)


class Desk:
    """Says at once what becomes of a message that is held."""

    def __init__(self, dropped: e.MessageDropped | None) -> None:
        self.dropped = dropped
        self.held: list[tuple[str, Hold]] = []

    async def hold(self, envelope: MessageEnvelope[Any], by: str, hold: Hold) -> None:
        self.held.append((by, hold))
        if self.dropped is not None:
            raise self.dropped


async def test_a_held_message_goes_on_or_is_stopped_as_someone_decides():
    for dropped in (None, e.MessageDropped("No.")):
        desk = Desk(dropped)
        chain = Chain([Says(lambda _: Hold("why"), "holder"), renames("other")], desk)
        ruling = await chain.settle(await chain.judge(envelope(call("read"))))
        assert desk.held == [("holder", Hold("why"))]
        if dropped is None:
            assert ruling.envelope.message.params == {"name": "other"}
        else:
            assert refusal(ruling) is dropped
    assert refusal(await Chain([Says(lambda _: Hold(), "holder")]).run(envelope(call("read"))))


WAITING = """
[[rule]]
name = "rename"
when = { tool = "read" }
action = "modify"
set = { "$.params.name" = "look" }

[[rule]]
name = "wait"
action = "delay"
seconds = 0.001

[[rule]]
name = "never"
when = { tool = "stop" }
action = "block"

[[rule]]
name = "again"
when = { tool = "look" }
action = "modify"
set = { "$.params.arguments.seen" = true }
"""


async def test_a_list_inside_the_list_may_change_a_message_have_it_wait_and_go_on():
    before, after = no("forbidden"), lets_pass("after")
    chain = Chain([before, *loaded(WAITING).interceptors, after])
    ruling = await chain.judge(envelope(call("read")))
    assert (ruling.by, ruling.changed, len(after.seen)) == ("wait", True, 0)
    assert ruling.envelope.message.params["name"] == "look"
    ruling = await chain.settle(ruling)
    assert ruling.verdict is CONTINUE
    assert (ruling.by, ruling.changed) == ("again", True)
    assert after.seen[0].message.params == {"name": "look", "arguments": {"seen": True}}
    # Once as it came, and once for each time that it came out of the list as another.
    assert [it.message.params["name"] for it in before.seen] == ["read", "look", "look"]


def test_the_guards_of_a_list_inside_the_list_look_again_too():
    chain = Chain([*loaded(WAITING).interceptors, renames("stop")])
    assert stopped_by(judged(chain, call("write"))) == "never"


async def test_an_answer_changed_later_is_still_known_by_what_it_answers():
    rules = loaded(
        '[[rule]]\nname = "small"\nwhen = { method = "tools/call", type = "response" }\n'
        'use = "size-limit"\noptions = { bytes = 200 }\n'
    )

    def grows(message: Any) -> Verdict:
        is_answer = not isinstance(message, Request)
        return Modify(replace(message, result={"x": "y" * 500})) if is_answer else CONTINUE

    chain = Chain([*rules.interceptors, Says(grows)])
    asked = envelope(call("read"))
    await chain.judge(asked)
    answered = asked.answered_by(answer({"x": "y"}), asked.context.timing)
    assert stopped_by(await chain.judge(answered)) == "small"
