from __future__ import annotations

import pytest

from folkmoot.core import errors as e
from folkmoot.transports.limits import SESSION_BYTES
from folkmoot.transports.mcp.sessions import McpSession, Sessions
from tests.clocks import StillClock

MINE, OTHERS, NONE = "a" * 64, "b" * 64, ""


def opened(**bounds: int) -> Sessions:
    return Sessions(StillClock(), idle_seconds=10, **bounds)


@pytest.mark.requirement("auth.session-id-alone", "auth.session-bound-at-register")
@pytest.mark.parametrize(
    ("first", "token_id", "admitted"),
    [(MINE, "", {MINE}), (NONE, "", {NONE}), (NONE, "c_mine", {NONE, MINE})],
)
def test_a_session_admits_the_token_it_was_opened_with_or_bound_to(first, token_id, admitted):
    session = McpSession("id", first, 0, token_id=token_id)
    shown = {MINE: "c_mine", OTHERS: "c_others", NONE: ""}
    assert {each for each in shown if session.admits(each, shown[each])} == admitted


def test_an_unknown_session_and_one_of_another_are_refused_alike():
    sessions = opened()
    sessions.open("known", MINE)
    sentences = set()
    for session_id, shown in (("unknown", MINE), ("known", OTHERS), ("known", NONE)):
        with pytest.raises(e.SessionNotFound) as refused:
            sessions.enter(session_id, shown)
        sentences.add(refused.value.message)
    assert len(sentences) == 1


def test_idle_sessions_are_found_and_busy_ones_are_not():
    clock = StillClock()
    sessions = Sessions(clock, idle_seconds=10)
    for name in ("idle", "busy", "used"):
        sessions.open(name, MINE)
    busy = sessions.enter("busy", MINE)
    clock.seconds += 9
    sessions.leave(sessions.enter("used", MINE))
    clock.seconds += 1
    assert ended(sessions) == ["idle"]
    with pytest.raises(e.SessionNotFound):
        sessions.enter("idle", MINE)
    sessions.leave(busy)
    clock.seconds += 10
    assert ended(sessions) == ["used", "busy"]
    assert len(sessions) == 0


def ended(sessions: Sessions) -> list[str]:
    """The ids of the sessions that were idle and have been dropped."""
    found = []
    while (session := sessions.next_idle()) is not None:
        sessions.drop(session)
        found.append(session.id)
    return found


def test_one_address_cannot_hold_many_sessions_without_an_account():
    sessions = opened(max_anonymous=2)
    first = sessions.open("one", NONE, address="192.0.2.1")
    sessions.open("two", OTHERS, address="192.0.2.1")
    sessions.open("three", MINE)
    sessions.check_room("192.0.2.2")
    with pytest.raises(e.TooManySessions, match="2 sessions"):
        sessions.check_room("192.0.2.1")
    sessions.drop(first)
    sessions.drop(first)
    assert first.ended
    sessions.check_room("192.0.2.1")
    sessions.open("four", NONE, address="192.0.2.1")
    with pytest.raises(e.TooManySessions):
        sessions.check_room("192.0.2.1")


def test_one_user_cannot_hold_all_sessions_and_gives_up_the_longest_unused_for_a_new_one():
    sessions = opened(most=100)
    for number in range(10):
        assert sessions.in_excess("alice") is None
        sessions.open(str(number), MINE, user_id="alice")
    sessions.open("other", OTHERS, user_id="bob")
    busy = [sessions.enter("0", MINE)]
    sessions.leave(sessions.enter("1", MINE))
    spare = sessions.in_excess("alice")
    assert spare.id == "2"
    assert sessions.in_excess("bob") is None
    busy += [sessions.enter(str(number), MINE) for number in range(1, 10)]
    with pytest.raises(e.TooManySessions, match="10 sessions"):
        sessions.in_excess("alice")
    sessions.drop(busy[0])
    assert sessions.in_excess("alice") is None


def stranger(sessions: Sessions, name: str, address: str) -> McpSession:
    return sessions.open(name, NONE, address=address)


def test_the_address_with_most_sessions_loses_the_one_unused_for_longest():
    sessions = opened(most_bytes=8 * 4 * SESSION_BYTES)
    assert stranger(sessions, "good", "1") is not None
    for number in range(3):
        assert sessions.to_make_room(stranger=True) is None
        stranger(sessions, f"bad{number}", "2")
    sessions.leave(sessions.enter("bad0", NONE))
    victim = sessions.to_make_room(stranger=True)
    assert victim.id == "bad1"
    # Those with an account have the rest of the room.
    assert sessions.to_make_room(stranger=False) is None
    for name in ("good", "bad0", "bad1", "bad2"):
        sessions.enter(name, NONE)
    with pytest.raises(e.HubFull) as refused:
        sessions.to_make_room(stranger=True)
    assert refused.value.data["retry_after"] > 0


def test_strangers_make_room_for_those_with_an_account():
    sessions = opened(most_bytes=8 * SESSION_BYTES)
    made = stranger(sessions, "stranger", "1")
    for number in range(7):
        assert sessions.to_make_room(stranger=False) is None
        sessions.open(f"mine{number}", MINE, user_id="me")
    assert sessions.to_make_room(stranger=False) is made
    # It is not a stranger's any more once someone has registered in it.
    sessions.bind(made, "c_session", "c_token", "you")
    sessions.check_room("1")
    with pytest.raises(e.HubFull):
        sessions.to_make_room(stranger=False)
    sessions.drop(made)
    assert sessions.to_make_room(stranger=False) is None
