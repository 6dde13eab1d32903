"""The migration layer."""

from __future__ import annotations

import pytest

from folkmoot.core.compat import (
    Direction,
    Frame,
    TransportMessage,
    direction_from_old,
    envelope_from_frame,
    into_envelope,
    into_envelope_with_direction,
)
from folkmoot.core.envelope import MessageDirection
from folkmoot.core.message import Notification, ProtocolMessage
from folkmoot.core.session import SessionId, SessionState
from folkmoot.core.timing import TimingContext

NOW = TimingContext(1.0, 2.0)
OLD = Notification(method="notifications/progress")


@pytest.mark.requirement("compat.alias")
def test_the_older_name_is_the_same_type():
    assert TransportMessage == ProtocolMessage


@pytest.mark.requirement("compat.into-envelope", "compat.into-envelope-with-direction")
def test_an_older_message_keeps_itself_and_knows_no_direction_unless_one_is_given():
    given = MessageDirection.SERVER_TO_CLIENT
    made = [into_envelope(OLD, NOW), into_envelope_with_direction(OLD, given, NOW)]
    assert [each.message for each in made] == [OLD, OLD]
    assert [each.context.direction for each in made] == [MessageDirection.UNKNOWN, given]


@pytest.mark.requirement("compat.into-envelope")
def test_without_a_timing_an_older_message_was_created_just_now():
    before = TimingContext.now()
    made = [
        into_envelope(OLD),
        into_envelope_with_direction(OLD, MessageDirection.CLIENT_TO_SERVER),
        envelope_from_frame(Frame(SessionId("s"), Direction.CLIENT_TO_SERVER, OLD)),
    ]
    after = TimingContext.now()
    for envelope in made:
        assert envelope.message == OLD
        assert before.created_at <= envelope.context.timing.created_at <= after.created_at


@pytest.mark.requirement("compat.from-frame", "compat.old-direction")
@pytest.mark.parametrize("old", Direction)
def test_a_frame_becomes_an_envelope(old):
    envelope = envelope_from_frame(Frame(SessionId("s"), old, OLD), NOW)
    assert envelope.message == OLD
    assert envelope.context.direction is direction_from_old(old)
    assert envelope.context.direction.name == old.name
    assert envelope.context.session.session_id == SessionId("s")
    assert envelope.context.session.state is SessionState.ACTIVE
