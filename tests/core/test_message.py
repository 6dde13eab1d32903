"""ProtocolMessage."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from folkmoot.core import errors as e
from folkmoot.core.message import (
    ErrorObject,
    Notification,
    Request,
    Response,
    decode_message,
    encode_message,
    is_message_id,
    members,
    message_from,
    replace,
    same_id,
)
from folkmoot.core.strict import encode
from tests.core.strategies import IDS, INTEGERS, JSON, OBJECTS, TEXT

METHODS = TEXT.filter(bool)
PARAMS = OBJECTS | st.lists(JSON, max_size=3) | st.none() | st.just(UNSET)
EXTRA = st.none() | st.dictionaries(
    TEXT.filter(lambda n: n not in {"jsonrpc", "id", "method", "params", "result", "error"}),
    JSON,
    min_size=1,
    max_size=2,
)
ERRORS = st.builds(
    ErrorObject,
    INTEGERS,
    TEXT,
    JSON | st.just(UNSET),
    st.none()
    | st.dictionaries(
        TEXT.filter(lambda n: n not in {"code", "message", "data"}), JSON, min_size=1, max_size=1
    ),
)
MESSAGES = (
    st.builds(Request, id=IDS, method=METHODS, params=PARAMS, extra=EXTRA)
    | st.builds(Notification, method=METHODS, params=PARAMS, extra=EXTRA)
    | st.builds(Response, id=IDS, result=JSON, extra=EXTRA)
    | st.builds(Response, id=IDS | st.none(), error=ERRORS, extra=EXTRA)
)


def call(**more: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {}, **more}


@pytest.mark.requirement("message.round-trip", "message.unknown-members")
@given(MESSAGES)
def test_any_message_survives_a_round_trip(message):
    decoded = decode_message(encode_message(message))
    assert decoded == message
    assert encode_message(decoded) == encode_message(message)


@pytest.mark.requirement("message.own-errors-only")
@given(
    OBJECTS
    | st.fixed_dictionaries(
        {}, optional=dict.fromkeys(("jsonrpc", "id", "method", "params", "result", "error"), JSON)
    )
)
def test_no_object_makes_it_raise_anything_but_its_own_errors(value):
    for candidate in value, {**value, "jsonrpc": "2.0"}:
        try:
            message_from(candidate)
        except e.MessageError:
            continue


@pytest.mark.requirement(
    "message.request", "message.notification", "message.response", "message.classified"
)
def test_a_message_is_told_by_its_members():
    assert message_from(call()) == Request(id=1, method="tools/call", params={})
    assert message_from({"jsonrpc": "2.0", "method": "x"}) == Notification(method="x")
    assert message_from({"jsonrpc": "2.0", "id": "a", "result": None}) == Response(
        id="a", result=None
    )
    failed = message_from({"jsonrpc": "2.0", "id": 1, "error": {"code": -1, "message": "no"}})
    assert failed == Response(id=1, error=ErrorObject(-1, "no"))


@pytest.mark.requirement("message.ambiguous-refused")
def test_a_message_that_is_call_and_answer_at_once_or_neither_is_refused():
    for more in ({"result": 1}, {"error": {"code": 1, "message": ""}}):
        with pytest.raises(e.Unclassifiable, match="not both"):
            message_from(call(**more))
    for value in ({"jsonrpc": "2.0"}, {"jsonrpc": "2.0", "id": 1}):
        with pytest.raises(e.Unclassifiable, match="needs"):
            message_from(value)


@pytest.mark.requirement("message.jsonrpc")
@pytest.mark.parametrize("version", [None, 2.0, "2", "1.0", True])
def test_the_version_must_be_the_string_2_0(version):
    with pytest.raises(e.InvalidVersion):
        message_from(call(jsonrpc=version))
    assert encode_message(Notification(method="x")).startswith(b'{"jsonrpc":"2.0",')


@pytest.mark.requirement("message.id-types")
def test_an_id_is_a_string_or_an_integer_of_64_bits():
    for identity in (None, True, False, 1.0, 1.5, [], {}, 2**63, -(2**63) - 1):
        with pytest.raises(e.InvalidId):
            message_from(call(id=identity))
        with pytest.raises(e.InvalidResponse if identity is None else e.InvalidId):
            message_from({"jsonrpc": "2.0", "id": identity, "result": 1})
    for identity in ("", "1", 0, -1, 2**63 - 1, -(2**63)):
        assert message_from(call(id=identity)).id == identity  # type: ignore[union-attr]


@pytest.mark.requirement("message.id-keeps-type")
def test_ids_are_compared_with_their_type():
    assert same_id(1, 1)
    assert same_id("1", "1")
    assert not same_id(1, "1")
    assert not same_id(1, True)
    assert not is_message_id(True)
    assert Request(id=1, method="x") != Request(id="1", method="x")
    assert Request(id=1, method="x") != Request(id=True, method="x")
    assert len({1: "number", "1": "string"}) == 2


@pytest.mark.parametrize(
    ("member", "values", "error"),
    [
        ("method", [None, 1, "", ["x"]], e.InvalidMethod),
        ("params", [1, "x", True], e.InvalidParams),
    ],
)
def test_a_method_is_a_string_that_is_not_empty_and_params_are_structured(member, values, error):
    for value in values:
        with pytest.raises(error):
            message_from(call(**{member: value}))


@pytest.mark.requirement("message.result-xor-error")
def test_a_response_has_a_result_or_an_error():
    both = {"jsonrpc": "2.0", "id": 1, "result": 1, "error": {"code": 1, "message": ""}}
    with pytest.raises(e.InvalidResponse, match="not both"):
        message_from(both)


def test_only_an_error_may_be_without_an_id():
    error = {"code": -32700, "message": "?"}
    assert message_from({"jsonrpc": "2.0", "id": None, "error": error}).id is None  # type: ignore[union-attr]
    assert message_from({"jsonrpc": "2.0", "error": error}).id is None  # type: ignore[union-attr]
    for value in {"jsonrpc": "2.0", "result": 1}, {"jsonrpc": "2.0", "id": None, "result": 1}:
        with pytest.raises(e.InvalidResponse, match="must carry the id"):
            message_from(value)


@pytest.mark.requirement("message.error-object")
@pytest.mark.parametrize(
    "error",
    [
        *(None, [], "x", {}, {"code": 1}, {"code": 1, "message": 2}),
        *({"code": "1", "message": ""}, {"code": True, "message": ""}),
    ],
)
def test_an_error_has_an_integer_code_and_a_message(error):
    with pytest.raises(e.InvalidResponse):
        message_from({"jsonrpc": "2.0", "id": 1, "error": error})


@pytest.mark.requirement("message.error-object", "message.absent-left-out")
def test_what_is_absent_is_not_written():
    assert encode_message(Response(id=1, result=None)) == b'{"jsonrpc":"2.0","id":1,"result":null}'
    assert (
        encode_message(Response(id=1, error=ErrorObject(2, "m")))
        == b'{"jsonrpc":"2.0","id":1,"error":{"code":2,"message":"m"}}'
    )
    assert members(Notification(method="x")) == {"jsonrpc": "2.0", "method": "x"}
    assert members(Notification(method="x", params=None))["params"] is None


@pytest.mark.requirement("message.bytes-kept", "message.unknown-members")
@pytest.mark.parametrize(
    "raw",
    [
        b'{ "method":"x", "jsonrpc" : "2.0", "params":{"n":1.0e0,"u":"\\u00e9"},"trace":"t" }',
        b'{"jsonrpc":"2.0","id":1,"result":{},"x":[1 , 2]}',
    ],
)
def test_a_message_nobody_changed_is_passed_on_byte_for_byte(raw):
    assert encode_message(decode_message(raw)) == raw


def test_a_changed_message_lets_go_of_its_bytes_and_keeps_unknown_members():
    message = decode_message(encode({**call(), "trace": "t"}))
    assert isinstance(message, Request)
    changed = replace(message, params={"name": "other"})
    assert changed.raw is None
    assert encode_message(changed) == encode({**call(params={"name": "other"}), "trace": "t"})
    assert message.params == {}


@pytest.mark.requirement("message.frozen")
def test_a_message_cannot_be_changed():
    message = Request(id=1, method="x")
    with pytest.raises(AttributeError):
        message.method = "y"  # type: ignore[misc]
    with pytest.raises(TypeError):
        hash(message)


def test_equal_messages_are_not_different():
    assert not Request(id=1, method="x") != Request(id=1, method="x")  # noqa: SIM202
    assert [Request(id=1, method="x")].count(Request(id=1, method="x")) == 1


def test_unknown_members_cannot_take_the_place_of_known_ones():
    forged = Request(id=1, method="x", extra={"method": "evil", "result": 1, "trace": "t"})
    assert members(forged) == {"jsonrpc": "2.0", "id": 1, "method": "x", "trace": "t"}
    error = ErrorObject(1, "m", data=4, extra={"code": 2, "more": 3})
    told = members(Response(id=1, error=error))["error"]
    assert told == {"code": 1, "message": "m", "data": 4, "more": 3}


@pytest.mark.requirement("message.result-xor-error")
@pytest.mark.parametrize("parts", [{}, {"result": 1, "error": ErrorObject(1, "m")}])
def test_a_response_that_is_no_answer_is_not_written(parts):
    with pytest.raises(e.InvalidResponse):
        encode_message(Response(id=1, **parts))


def test_a_message_of_another_class_is_another_message():
    assert Request(id=1, method="x") != "x"
    assert Notification(method="x") != Request(id=1, method="x")


def test_what_was_said_does_not_show_in_the_repr():
    secret = {"token": "sk_secret"}
    assert repr(Request(id=1, method="x", params=secret)) == "Request(id=1, method='x')"
    assert repr(Notification(method="x", params=secret)) == "Notification(method='x')"
    assert repr(Response(id=1, result=secret)) == "Response(id=1)"
