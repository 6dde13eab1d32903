"""Messages of a room, as they are sent."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from folkmoot.core import errors as e
from folkmoot.core.mcpx import McpxMessage, decode_mcpx
from folkmoot.core.strict import encode
from tests.core.strategies import JSON

SENT = {
    "protocol": "mcpx/v1",
    "id": "m1",
    "from": "alice",
    "to": ["files"],
    "kind": "mcp.request.tools/call:read",
    "correlation_id": ["p1"],
    "context": "thread",
    "payload": {"method": "tools/call"},
}


def decoded(**more: Any) -> McpxMessage:
    return decode_mcpx(encode({**SENT, **more}))


def test_every_member_is_recognised():
    message = decoded(extra=1)
    assert (str(message.kind), message.payload) == (SENT["kind"], SENT["payload"])
    assert (message.id, message.sender, message.context) == ("m1", "alice", "thread")
    assert (message.to, message.correlation_id) == (("files",), ("p1",))
    assert message.members["extra"] == 1
    assert message.raw == encode({**SENT, "extra": 1})
    assert message.claims == ()


def test_what_is_absent_is_empty():
    message = decode_mcpx(b'{"protocol":"mcpx/v1","kind":"chat.message"}')
    assert (message.id, message.sender, message.context, message.payload) == (None,) * 4
    assert message.to == message.correlation_id == ()
    assert decoded(to=None, correlation_id=None).to == ()


def test_a_lone_correlation_becomes_a_list():
    assert decoded(correlation_id="p1").correlation_id == ("p1",)


@pytest.mark.requirement("json.members-decoded", "json.duplicate-keys-decoded")
def test_members_are_recognised_in_the_decoded_form():
    raw = encode(SENT)[:-1]
    assert decode_mcpx(raw + rb',"\u0073eq":7}').claims == ("seq",)
    assert decode_mcpx(raw + rb',"\u0073eq":7,"t\u0073":1}').claims == ("seq", "ts")
    for again in rb',"\u0066rom":"bob"}', rb',"fro\u006d":"bob"}', rb',"kin\u0064":"chat.message"}':
        with pytest.raises(e.DuplicateKey):
            decode_mcpx(raw + again)


@pytest.mark.parametrize("protocol", [None, "mcpx/v2", "MCPX/v1", ""])
def test_another_protocol_is_refused(protocol):
    with pytest.raises(e.UnsupportedProtocol):
        decoded(protocol=protocol)


@pytest.mark.parametrize(
    ("member", "values"),
    [
        ("protocol", [1]),
        ("kind", [None, 1]),
        ("id", [1, "", "x" * 129, "a\nb"]),
        ("from", [[]]),
        ("to", [{}, "files", [1], [""], ["x"] * 65]),
        ("correlation_id", [[None]]),
        ("context", [1]),
        ("payload", [[], "x"]),
    ],
)
def test_a_member_of_the_wrong_type_is_refused_by_name(member, values):
    for value in values:
        with pytest.raises(e.InvalidEnvelope) as caught:
            decoded(**{member: value})
        assert member in str(caught.value)
        assert caught.value.data["member"].startswith(member)


def test_a_message_without_a_kind_is_refused():
    with pytest.raises(e.InvalidEnvelope, match="kind"):
        decode_mcpx(b'{"protocol":"mcpx/v1"}')


def test_old_spellings_are_accepted_only_when_asked_for():
    raw = encode({**SENT, "kind": "mcp/request:tools/call"})
    with pytest.raises(e.KindError):
        decode_mcpx(raw)
    migrated = decode_mcpx(raw, accept_old_spellings=True)
    assert str(migrated.kind) == "mcp.request.tools/call"
    assert migrated.claims == ("kind",)


@given(
    st.fixed_dictionaries(
        {"protocol": st.just("mcpx/v1")},
        optional=dict.fromkeys({*SENT, "seq"} - {"protocol"}, JSON),
    )
)
def test_no_message_makes_it_raise_anything_but_its_own_errors(sent):
    try:
        decode_mcpx(encode(sent))
    except (e.MessageError, e.KindError):
        return


def test_what_was_said_does_not_show_in_the_repr():
    assert "secret" not in repr(decoded(payload={"text": "secret"}))
