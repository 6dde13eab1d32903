from __future__ import annotations

import pytest

from folkmoot.core.errors import SessionNotFound
from folkmoot.transports.mcp.sessions import MARGIN_SECONDS, Session, Sessions

MINE, OTHERS, NONE = "a" * 64, "b" * 64, ""


class Clock:
    time = 0.0

    def now(self) -> float:
        return self.time

    def monotonic(self) -> float:
        return self.time


@pytest.mark.requirement("auth.session-id-alone", "auth.session-bound-at-register")
@pytest.mark.parametrize(
    ("mark", "bound", "admitted"),
    [
        (MINE, NONE, {MINE}),
        (NONE, NONE, {NONE}),
        (NONE, MINE, {NONE, MINE}),
    ],
)
def test_a_session_admits_the_token_it_was_opened_with_or_bound_to(
    mark: str, bound: str, admitted: set[str]
) -> None:
    session = Session("id", mark, 0, bound)
    assert {each for each in (MINE, OTHERS, NONE) if session.admits(each)} == admitted


def test_an_unknown_session_and_one_of_another_are_refused_alike() -> None:
    sessions = Sessions(Clock(), idle_seconds=10)
    sessions.open("known", MINE)
    sentences = set()
    for session_id, mark in (("unknown", MINE), ("known", OTHERS), ("known", NONE)):
        with pytest.raises(SessionNotFound) as refused:
            sessions.enter(session_id, mark)
        sentences.add(refused.value.message)
    assert len(sentences) == 1


def test_idle_sessions_are_forgotten_and_busy_ones_are_not() -> None:
    clock = Clock()
    sessions = Sessions(clock, idle_seconds=10)
    for name in ("idle", "busy", "used"):
        sessions.open(name, MINE)
    busy = sessions.enter("busy", MINE)
    clock.time = 9
    sessions.leave(sessions.enter("used", MINE))
    clock.time = 10 + MARGIN_SECONDS
    sessions.open("new", MINE)
    with pytest.raises(SessionNotFound):
        sessions.enter("idle", MINE)
    assert len(sessions) == 3
    sessions.leave(busy)
    clock.time = 2 * (10 + MARGIN_SECONDS)
    sessions.open("newer", MINE)
    assert len(sessions) == 1


def test_a_session_that_ended_says_so_to_those_who_hold_it() -> None:
    sessions = Sessions(Clock(), idle_seconds=10)
    session = sessions.open("one", MINE)
    sessions.drop(session)
    sessions.drop(session)
    sessions.leave(session)
    assert session.ended
    assert len(sessions) == 0
