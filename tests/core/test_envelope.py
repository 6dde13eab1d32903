"""MessageEnvelope."""

from __future__ import annotations

import copy
import json
import os
import runpy
import time

import msgspec
import pytest

from folkmoot.core import defaults
from folkmoot.core import errors as e
from folkmoot.core.envelope import (
    MessageContext,
    MessageDirection,
    MessageEnvelope,
)
from folkmoot.core.message import Notification, Request, Response
from folkmoot.core.session import Era, ProtocolVersion, SessionContext, SessionId
from folkmoot.core.timing import TimingContext
from folkmoot.core.transport import TransportContext, TransportType

NOW = TimingContext(1.0, 2.0)
LATER = TimingContext(3.0, 4.0)
REQUEST = Request(id=1, method="tools/list")
TO_SERVER = MessageDirection.CLIENT_TO_SERVER
TO_CLIENT = MessageDirection.SERVER_TO_CLIENT


@pytest.mark.requirement("envelope.new-is-minimal", "transport.stdio")
def test_what_the_shell_knows_need_not_be_given(monkeypatch):
    before = time.monotonic()
    timing = MessageEnvelope.new(REQUEST).context.timing
    assert before <= timing.created_at <= time.monotonic()
    assert abs(timing.system_time - time.time()) < 60
    assert MessageContext.minimal().timing.created_at >= timing.created_at
    worked = TimingContext.now().start_processing().complete_processing().mark_sent()
    assert worked.processing_duration() is not None
    assert TransportContext.stdio() == TransportContext.stdio(os.getpid())
    core = runpy.run_path(str(defaults.__file__))
    monkeypatch.setattr(defaults, "monotonic", core["monotonic"])
    with pytest.raises(RuntimeError, match="no clock"):
        TimingContext.now()


def full() -> MessageEnvelope[Request]:
    return (
        MessageEnvelope.new(REQUEST, NOW)
        .with_direction(TO_SERVER)
        .with_session(SessionContext.with_id(SessionId("s")))
        .with_transport(TransportContext.websocket())
        .with_extension("trace", "t")
    )


@pytest.mark.requirement("envelope.message-and-context", "envelope.new-is-minimal")
def test_a_new_envelope_has_minimal_context():
    envelope = MessageEnvelope.new(REQUEST, NOW)
    context = envelope.context
    assert envelope.message is REQUEST
    assert context == MessageContext.minimal(NOW)
    assert (context.direction, context.timing) == (MessageDirection.UNKNOWN, NOW)
    assert context.session is SessionContext.anonymous()
    assert context.transport.transport_type is TransportType.UNKNOWN
    assert not hasattr(REQUEST, "context")


@pytest.mark.requirement("envelope.builders", "envelope.frozen")
@pytest.mark.parametrize(
    ("builder", "part", "value"),
    [
        ("with_direction", "direction", TO_CLIENT),
        ("with_session", "session", SessionContext.with_id(SessionId("other"))),
        ("with_transport", "transport", TransportContext.stdio(1)),
        ("with_timing", "timing", LATER),
    ],
)
def test_a_builder_changes_one_part_and_leaves_the_original(builder, part, value):
    before = full()
    after = getattr(before, builder)(value)
    assert after.message is before.message
    assert after.context == msgspec.structs.replace(before.context, **{part: value})
    assert before == full()
    with pytest.raises(AttributeError):
        setattr(before.context, part, value)


def test_another_message_takes_over_the_context():
    envelope = full()
    other = Notification(method="notifications/x")
    assert envelope.with_message(other).message is other
    assert envelope.with_message(other).context is envelope.context


@pytest.mark.requirement("envelope.copy-preserves-context")
def test_a_copy_has_the_same_context():
    assert copy.copy(full()).context == full().context
    assert copy.copy(full()).context.session.session_id == SessionId("s")


@pytest.mark.requirement("envelope.extensions")
def test_extensions_are_added_beside_the_others():
    assert MessageEnvelope.new(REQUEST, NOW).context.extensions == {}
    envelope = full()
    more = envelope.with_extension("tenant", 7)
    assert more.context.extensions == {"trace": "t", "tenant": 7}
    assert envelope.context.extensions == {"trace": "t"}


def test_a_context_survives_being_written_down():
    context = full().context
    assert msgspec.json.decode(msgspec.json.encode(context), type=MessageContext) == context
    assert copy.deepcopy(context) == context


@pytest.mark.requirement(
    "direction.values",
    "direction.forward-to-server",
    "direction.send-to-client",
    "direction.reverse",
)
@pytest.mark.parametrize(
    ("direction", "to_server", "to_client", "reverse"),
    [
        (TO_SERVER, True, False, TO_CLIENT),
        (TO_CLIENT, False, True, TO_SERVER),
        (MessageDirection.INTERNAL, False, False, MessageDirection.INTERNAL),
        (MessageDirection.UNKNOWN, False, False, MessageDirection.UNKNOWN),
    ],
)
def test_the_direction_routes(direction, to_server, to_client, reverse):
    assert direction.should_forward_to_server() is to_server
    assert direction.should_send_to_client() is to_client
    assert direction.reverse() is reverse
    assert len(MessageDirection) == 4


@pytest.mark.requirement("direction.unknown-decodes")
def test_a_direction_from_elsewhere_decodes_as_unknown():
    assert msgspec.json.decode(b'"sideways"', type=MessageDirection) is MessageDirection.UNKNOWN
    encoded = json.dumps(TO_SERVER.value).encode()
    assert msgspec.json.decode(encoded, type=MessageDirection) is TO_SERVER


@pytest.mark.requirement("direction.not-from-method")
@pytest.mark.parametrize("direction", MessageDirection)
def test_a_method_never_decides_the_direction(direction):
    cancelled = Notification(method="notifications/cancelled")
    envelope = MessageEnvelope.new(cancelled, NOW).with_direction(direction)
    assert envelope.context.direction is direction


@pytest.mark.requirement("direction.response-reversed")
def test_the_answer_goes_the_other_way_in_the_same_session():
    answer = full().answered_by(Response(id=1, result={}), LATER)
    other = {"direction": TO_CLIENT, "timing": LATER}
    assert answer.context == msgspec.structs.replace(full().context, **other)
    event = TransportContext.sse("stream", "7")
    streamed = full().answered_by(Response(id=1, result={}), LATER, event)
    assert streamed.context.transport is event


def test_an_answer_to_another_request_or_to_a_notification_is_refused():
    notice = full().with_message(Notification(method="x"))
    for asked, identity in ((full(), "1"), (full(), 2), (full(), None), (notice, 1)):
        with pytest.raises(e.InvalidResponse):
            asked.answered_by(Response(id=identity, result={}), LATER)


STATELESS = SessionContext(protocol_version=ProtocolVersion("2026-07-28"))


@pytest.mark.requirement(
    "envelope.complete-needs-direction",
    "envelope.complete-handshake-needs-session",
    "envelope.complete-stateless",
    "envelope.era",
)
@pytest.mark.parametrize(
    ("direction", "session", "complete"),
    [
        (TO_SERVER, SessionContext.with_id(SessionId("s")), True),
        (MessageDirection.UNKNOWN, SessionContext.with_id(SessionId("s")), False),
        (TO_SERVER, SessionContext.anonymous(), False),
        (TO_SERVER, STATELESS, True),
        (MessageDirection.UNKNOWN, STATELESS, False),
    ],
)
def test_a_context_is_complete_when_it_can_be_routed(direction, session, complete):
    context = MessageContext(NOW, direction, session)
    assert context.is_complete() is complete
    assert context.session.era in Era
