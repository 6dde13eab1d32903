"""SessionContext."""

from __future__ import annotations

import pytest

from folkmoot.core import errors as e
from folkmoot.core.session import (
    KNOWN_VERSIONS,
    TRANSITIONS,
    Era,
    ProtocolVersion,
    SessionContext,
    SessionId,
    SessionState,
)


@pytest.mark.requirement("session.anonymous")
def test_an_anonymous_session_has_nothing():
    session = SessionContext.anonymous()
    assert session.session_id is session.correlation_id is None
    assert session.state is SessionState.UNINITIALIZED


@pytest.mark.requirement("session.with-id")
def test_a_session_with_an_id_is_active():
    session = SessionContext.with_id(SessionId("s1"))
    assert (str(session.session_id), session.correlation_id) == ("s1", None)
    assert "secret-id" not in repr(SessionContext.with_id(SessionId("secret-id")))
    assert session.state is SessionState.ACTIVE


@pytest.mark.requirement("session.default-version")
def test_the_default_version_is_a_real_one():
    version = SessionContext.anonymous().protocol_version
    assert str(version) == "2025-11-25"
    assert version.is_known
    assert not ProtocolVersion("2025-11-05").is_known


@pytest.mark.requirement("session.version-era")
@pytest.mark.parametrize(
    ("version", "era"),
    [(v, Era.STATELESS if v == "2026-07-28" else Era.HANDSHAKE) for v in KNOWN_VERSIONS]
    + [("2027-01-01", Era.STATELESS), ("draft", Era.HANDSHAKE), ("2026-07-28\n", Era.HANDSHAKE)],
)
def test_a_version_tells_its_era(version, era):
    assert ProtocolVersion(version).era is era
    assert SessionContext().with_version(ProtocolVersion(version)).era is era


@pytest.mark.requirement("session.correlation")
def test_a_session_carries_a_correlation():
    session = SessionContext.with_id(SessionId("s")).with_correlation("c1")
    assert session.correlation_id == "c1"
    assert session.session_id == SessionId("s")


@pytest.mark.requirement("session.states")
@pytest.mark.parametrize("before", SessionState)
@pytest.mark.parametrize("after", SessionState)
def test_states_go_where_the_table_says_and_nowhere_else(before, after):
    session = SessionContext(state=before)
    if after in TRANSITIONS[before]:
        assert session.with_state(after).state is after
    else:
        with pytest.raises(e.SessionTransition, match=f"{before.value} cannot be {after.value}"):
            session.with_state(after)


def test_every_state_can_end_and_closed_is_the_end():
    assert not TRANSITIONS[SessionState.CLOSED]
    assert all(
        s.may_become(SessionState.CLOSED) for s in SessionState if s is not SessionState.CLOSED
    )
