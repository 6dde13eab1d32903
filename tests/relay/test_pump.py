"""One conversation between two carriers: what passes, in which order, and how it ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from folkmoot.core import errors as e
from folkmoot.core.envelope import MessageEnvelope
from folkmoot.core.message import Request
from folkmoot.core.ports import Carried
from folkmoot.core.session import SessionState
from folkmoot.core.transport import TransportContext
from folkmoot.core.verdict import CONTINUE, Block, Delay, Mock, Modify, Verdict
from folkmoot.relay import pump
from tests.mcp.client.places import told
from tests.mcp_harness import rpc
from tests.relay.carriers import (
    TO_CLIENT,
    TO_SERVER,
    MemoryCarrier,
    MemoryTape,
    Says,
    Scene,
    bytes_of,
)


def call(number: int | str) -> dict[str, Any]:
    return rpc("tools/call", {"name": "echo"}, number)


def answer(number: int | str, result: Any = None) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "result": result or {}}


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    """A proxy between a client and a server, with no rules and no tape."""
    async with Scene().running() as made:
        yield made


BLOCK = Block(e.BlockedByInterceptor("Not here."))


@pytest.mark.requirement(
    "proxy.unknown-members", "proxy.overhead", "proxy.every-message-is-an-envelope"
)
async def test_what_nobody_changes_leaves_as_the_bytes_it_came_as(scene):
    odd = b'{ "jsonrpc":"2.0" ,"id":7,"method":"m","params":{"z":1,"a":[1.50]},"x-new":{} }'
    scene.client.says(odd)
    await scene.server.hears()
    assert scene.server.last.message.raw is not None
    assert bytes_of(scene.server.last) == odd


@pytest.mark.requirement("proxy.direction-set-at-entry", "proxy.direction-routes")
async def test_cancellation_and_progress_go_both_ways_by_where_they_entered(scene):
    both = [
        told("notifications/cancelled", requestId=1),
        told("notifications/progress", progressToken=1, progress=1),
        call(1) | {"method": "elicitation/create"},
        told("notifications/tools/list_changed"),
    ]
    scene.client.says(*both)
    assert await scene.server.hears(len(both)) == both
    assert scene.server.last.context.direction is TO_SERVER
    scene.server.says(*both)
    assert await scene.client.hears(len(both)) == both
    assert scene.client.last.context.direction is TO_CLIENT
    assert (scene.client.heard, scene.server.heard) == ([], [])


@pytest.mark.requirement(
    "proxy.session-travels", "proxy.correlates-responses", "proxy.session-states"
)
async def test_the_session_travels_with_each_message_and_ties_answers_to_requests(scene):
    params = {"protocolVersion": "2025-06-18", "capabilities": {}}
    scene.client.says({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params})
    await scene.server.hears()
    assert scene.server.last.context.session.session_id is None
    scene.server.says(answer(1, {"protocolVersion": "2025-03-26"}))
    await scene.client.hears()
    scene.client.says(told("notifications/initialized"))
    await scene.server.hears()
    scene.client.says(call(2), call("2"))
    await scene.server.hears(2)
    session = scene.server.last.context.session
    assert session.state is SessionState.ACTIVE
    assert (str(session.session_id), session.protocol_version.value) == ("k", "2025-03-26")
    assert session.correlation_id == 'client:"2"'
    scene.server.says(answer("2"))
    await scene.client.hears()
    assert scene.client.last.context.session == session
    scene.server.says(call("2"))
    await scene.client.hears()
    assert scene.client.last.context.session.correlation_id == 'server:"2"'


@pytest.mark.requirement("proxy.timing", "proxy.context-end-to-end")
async def test_a_message_leaves_with_the_context_it_came_with_and_its_times(scene):
    scene.client.says(call(1))
    await scene.server.hears()
    context = scene.server.last.context
    assert context.transport is scene.client.current_context()
    timing: Any = context.timing
    worked = [timing.processing_started, timing.processing_completed]
    assert timing.created_at <= worked[0] <= worked[1] <= timing.sent_at


@pytest.mark.requirement("proxy.interceptors-see-context", "proxy.internal-not-forwarded")
async def test_a_blocked_request_is_answered_here_and_the_server_never_hears_of_it():
    rule, tape = Says(BLOCK, TO_SERVER), MemoryTape()
    async with Scene([rule], tape=tape).running() as scene:
        scene.client.says(call(1), told("notifications/cancelled", requestId=9), call(2))
        answers = await scene.client.hears(2)
        assert [each["id"] for each in answers] == [1, 2]
        assert answers[0]["error"]["message"] == "Not here."
        assert scene.server.heard == []
        assert rule.seen[0].context.transport is scene.client.current_context()
        assert [each.by for each in tape.carried] == ["rule"] * 5


async def test_a_blocked_answer_becomes_an_error_and_a_blocked_question_of_the_server_too():
    async with Scene([Says(BLOCK, TO_CLIENT)]).running() as scene:
        scene.client.says(call(1))
        await scene.server.hears()
        scene.server.says(answer(1), call(5) | {"method": "roots/list"})
        assert (await scene.client.hears())[0]["error"]["message"] == "Not here."
        assert (await scene.server.hears())[0]["id"] == 5
        assert scene.client.heard == []


async def test_a_mock_answers_in_the_servers_place():
    async with Scene([Says(Mock({"content": []}), TO_SERVER)]).running() as scene:
        scene.client.says(call("a"))
        assert await scene.client.hears() == [answer("a", {"content": []})]
        assert scene.server.heard == []


async def test_a_changed_message_is_on_the_tape_as_each_side_saw_it():
    tape = MemoryTape()
    other = Request(id=1, method="tools/call", params={"name": "other"})
    async with Scene([Says(Modify(other), TO_SERVER)], tape=tape).running() as scene:
        scene.client.says(call(1))
        assert (await scene.server.hears())[0]["params"] == {"name": "other"}
        line = tape.carried[0]
        assert line.envelope.message.params == {"name": "echo"}
        assert line.at_server.params == {"name": "other"}


async def test_a_message_that_waits_lets_the_others_go_by():
    tape = MemoryTape()
    async with Scene([Says(Delay(0.05), "slow")], tape=tape).running() as scene:
        scene.client.says(rpc("slow", id_=1), call(2))
        assert [each["id"] for each in await scene.server.hears(2)] == [2, 1]
        noted = [(each.verdict, each.by) for each in tape.carried]
        assert noted == [(None, ""), (Delay(0.05), "rule")]


async def test_nothing_is_sent_before_it_is_on_the_tape_nor_when_it_cannot_be():
    tape = MemoryTape()
    async with Scene(tape=tape).running() as scene:
        scene.client.says(call(1))
        await scene.server.hears()
        assert tape.committed == 1
        tape.full = True
        scene.client.says(call(2))
        answers = await scene.client.hears(2)
        assert {each["id"] for each in answers} == {1, 2}
        assert answers[0]["error"]["data"]["code"] == "tape_unwritable"
        await scene.over.wait()
        assert isinstance(scene.failure, e.TapeUnwritable)
        assert scene.server.heard == []
        assert scene.server.closed
        assert scene.client.closed


class Ponders:
    """Thinks about the message with one id until it may go on; blocks or passes the others."""

    name, guards = "ponders", False

    def __init__(self, number: int, others: Verdict = CONTINUE) -> None:
        self.number, self.others = number, others
        self.begun, self.goes_on = asyncio.Event(), asyncio.Event()

    async def intercept(self, envelope: MessageEnvelope[Any]) -> Verdict:
        if getattr(envelope.message, "id", None) != self.number:
            return self.others
        self.begun.set()
        await self.goes_on.wait()
        return CONTINUE


async def test_a_noted_message_is_on_the_tape_while_the_next_one_is_judged():
    tape, slow = MemoryTape(), Ponders(2)
    async with Scene([slow], tape=tape).running() as scene:
        scene.client.says(call(1), call(2))
        await slow.begun.wait()
        assert tape.committed == len(tape.carried) == 1
        slow.goes_on.set()
        await scene.server.hears(2)


class Promising(MemoryCarrier):
    """Says that the next message is there before it is."""

    @property
    def waiting(self) -> bool:
        return True


async def test_what_was_noted_is_on_the_tape_when_the_pump_is_cancelled():
    noted = asyncio.Event()

    class Tape(MemoryTape):
        def note(self, carried: Carried) -> None:
            super().note(carried)
            noted.set()

    tape = Tape()
    scene = Scene(tape=tape)
    scene.client = Promising(TO_SERVER, TransportContext.stdio(1))
    async with scene.running():
        scene.client.says(call(1))
        await noted.wait()
        assert tape.committed == 0
    assert tape.committed == 1


async def test_stopped_messages_count_among_those_taken_together(monkeypatch):
    monkeypatch.setattr(pump, "MOST_TOGETHER", 2)
    # A notification that is blocked leaves nothing behind that is to be sent.
    slow = Ponders(9, BLOCK)
    async with Scene([slow]).running() as scene:
        scene.client.says(call(1), told("x"), told("x"), call(9))
        await slow.begun.wait()
        assert [each.message.id for each in scene.client.heard] == [1]


async def test_when_the_server_is_gone_every_open_request_is_answered(scene):
    scene.client.says(call(1), call("1"), call(2))
    await scene.server.hears(3)
    scene.server.says(answer(2))
    await scene.client.hears()
    scene.server.leaves()
    answers = await scene.client.hears(2)
    assert [each["id"] for each in answers] == [1, "1"]
    assert answers[0]["error"]["data"]["code"] == "server_unreachable"
    await scene.over.wait()
    assert scene.failure is None
    assert len(scene.sessions) == 0


async def test_a_client_that_has_said_all_still_gets_its_answers(scene):
    scene.client.says(call(1))
    scene.client.leaves()
    await scene.server.hears()
    scene.server.says(answer(1))
    assert (await scene.client.hears())[0]["id"] == 1
    await scene.over.wait()
    assert scene.server.closed


async def test_a_client_that_is_gone_ends_the_conversation(scene):
    scene.client.deaf = True
    scene.server.says(told("notifications/message", data="x"))
    await scene.over.wait()
    assert scene.server.closed


@pytest.mark.requirement("proxy.session-manager")
async def test_a_session_that_the_manager_ends_ends_its_conversation(scene):
    scene.client.says(call(1))
    await scene.server.hears()
    scene.sessions.find("k").end()
    await scene.over.wait()
    assert scene.failure is None
    assert scene.server.closed
    assert scene.client.closed


async def test_who_has_cancelled_everything_waits_for_nothing_at_the_end(scene, monkeypatch):
    monkeypatch.setattr(pump, "DRAIN_SECONDS", 3600)
    scene.client.says(call(1), told("notifications/cancelled", requestId=1))
    await scene.server.hears(2)
    scene.client.leaves()
    await scene.over.wait()
    assert scene.client.heard == []


async def test_a_client_that_hears_nothing_any_more_is_not_waited_for(scene, monkeypatch):
    monkeypatch.setattr(pump, "DRAIN_SECONDS", 3600)
    monkeypatch.setattr(MemoryCarrier, "reachable", False)
    scene.client.says(call(1))
    await scene.server.hears()
    scene.client.leaves()
    await scene.over.wait()
