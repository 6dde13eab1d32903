"""The session manager: states, expiry, bounds."""

from __future__ import annotations

import pytest

from folkmoot.core.envelope import MessageContext, MessageDirection, MessageEnvelope
from folkmoot.core.message import (
    Notification,
    ProtocolMessage,
    Request,
    Response,
)
from folkmoot.core.session import ANONYMOUS, Era, SessionState
from folkmoot.core.timing import TimingContext
from folkmoot.proxy.sessions import ProxySession, SessionLimits, SessionManager
from tests.proxy.rules.support import TO_CLIENT, TO_SERVER, Clock


def said(message: ProtocolMessage, direction: MessageDirection) -> MessageEnvelope[ProtocolMessage]:
    return MessageEnvelope(message, MessageContext(TimingContext(0, 0), direction))


def greeting(version: str = "2025-06-18") -> MessageEnvelope[ProtocolMessage]:
    params = {"protocolVersion": version}
    return said(Request(id=1, method="initialize", params=params), TO_SERVER)


READY = said(Notification(method="notifications/initialized"), TO_SERVER)


def manager(clock: Clock, **limits: float) -> SessionManager:
    return SessionManager(clock, SessionLimits(**limits))


@pytest.mark.requirement("proxy.session-states", "proxy.session-manager")
def test_a_session_goes_through_its_states_in_order_and_no_other():
    session = manager(Clock()).open("s")
    assert session.context.state is SessionState.UNINITIALIZED
    answer = Response(id=1, result={"protocolVersion": "2025-03-26"})
    steps = [greeting(), said(answer, TO_CLIENT), READY, greeting("2024-11-05")]
    states = [session.follow(step).state for step in steps]
    assert states == [SessionState.INITIALIZING] * 2 + [SessionState.ACTIVE] * 2
    session.close()
    assert session.context.state is SessionState.CLOSED
    assert session.context.protocol_version.value == "2025-03-26"
    assert session.follow(READY).state is SessionState.CLOSED


def test_an_answer_to_something_else_does_not_say_which_version_is_spoken():
    session = manager(Clock()).open("s")
    session.follow(greeting())
    session.follow(said(Response(id="1", result={"protocolVersion": "2024-11-05"}), TO_CLIENT))
    assert session.context.protocol_version.value == "2025-06-18"


def test_a_request_of_the_stateless_era_makes_its_conversation_active():
    session = manager(Clock()).open("s", named=False)
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}
    session.follow(said(Request(id=1, method="tools/list", params={"_meta": meta}), TO_SERVER))
    assert session.context.state is SessionState.ACTIVE
    assert session.context.era is Era.STATELESS
    assert session.context.session_id is None


@pytest.mark.requirement("proxy.session-manager")
def test_what_is_idle_or_old_ends_and_what_is_used_stays():
    clock, ended = Clock(), []
    sessions = manager(clock, idle_seconds=10, absolute_seconds=100)

    def opened(name: str) -> ProxySession:
        return sessions.open(name, end=lambda: ended.append(name))

    opened("idle")
    busy = opened("busy")
    for _ in range(4):
        clock.seconds += 6
        sessions.use(busy)
        sessions.expire()
    assert ended == ["idle"]
    clock.seconds += 9
    late = opened("late")
    for _ in range(8):
        clock.seconds += 9
        for each in (busy, late):
            sessions.use(each)
        sessions.expire()
    assert ended == ["idle", "busy"]
    assert [len(sessions), dict(sessions.ended)] == [1, {"idle": 1, "old": 1}]
    assert busy.context.state is SessionState.CLOSED


@pytest.mark.requirement("proxy.session-manager")
def test_when_there_are_too_many_the_longest_unused_goes():
    clock, ended = Clock(), []
    sessions = manager(clock, most=3)
    for name in "abc":
        sessions.open(name, end=lambda name=name: ended.append(name))
    assert sessions.find("a") is not None
    sessions.open("d")
    assert ended == ["b"]
    assert len(sessions) == 3
    assert sessions.find("b") is None


@pytest.mark.requirement("proxy.session-manager")
def test_whoever_is_told_of_an_end_may_use_the_manager():
    sessions = manager(Clock(), most=2)
    sessions.open("a", end=lambda: sessions.close(sessions.open("again")))
    sessions.open("b")
    sessions.open("c")
    assert sessions.find("a") is None
    assert sessions.find("c") is not None
    assert len(sessions) <= 2


def test_one_that_its_client_ends_is_not_told_of_it():
    ended: list[str] = []
    sessions = manager(Clock())
    session = sessions.open("a", end=lambda: ended.append("a"))
    sessions.close(session)
    sessions.close(session)
    assert (ended, len(sessions), dict(sessions.ended)) == ([], 0, {"closed": 1})


@pytest.mark.requirement("proxy.session-pre-initialisation")
def test_a_message_before_the_session_exists_carries_the_anonymous_one():
    assert greeting().context.session is ANONYMOUS
    assert manager(Clock()).open("s", named=False).context == ANONYMOUS


def test_one_that_is_not_of_a_single_client_grows_as_old_as_it_is_used():
    clock = Clock()
    sessions = manager(clock, idle_seconds=10, absolute_seconds=100)
    shared = sessions.open("shared", lasting=True)
    for _ in range(30):
        clock.seconds += 9
        sessions.use(shared)
        assert sessions.expire() == 0
    clock.seconds += 11
    assert (sessions.expire(), dict(sessions.ended)) == (1, {"idle": 1})
