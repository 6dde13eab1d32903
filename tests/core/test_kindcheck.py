"""Kind against payload: every spoof, and every way to be wrong."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from folkmoot.core import errors as e
from folkmoot.core.kindcheck import check, effective, kind_of
from folkmoot.core.kinds import parse
from folkmoot.core.message import Notification, Request, Response
from tests.core.strategies import JSON, OBJECTS, kind_texts

READ = {"name": "read_file", "arguments": {"path": "a"}}


def request(method: str = "tools/call", params: Any = READ, **more: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params, **more}


def without(payload: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in payload.items() if name not in names}


def checked(kind: str, payload: Any, to: Any = ("files",), about: Any = ()) -> str:
    return str(check(parse(kind), payload, to, about))


CALL = "mcp.request.tools/call"
READING = f"{CALL}:read_file"
NOTIFIED = "mcp.notification.notifications/message"
NOTE = {"jsonrpc": "2.0", "method": "notifications/message", "params": {}}
CHAT = "mcp.notification.notifications/chat/message"


def saying(**body: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": "notifications/chat/message", "params": body}


def about(method: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, "params": {}}


ANSWER = {"jsonrpc": "2.0", "id": 1, "result": {}}
FAILURE = {"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": "no"}}


@pytest.mark.requirement(
    "check.context-name",
    "check.context-uri",
    "check.context-completion",
    "check.context-whole",
    "check.context-optional",
    "kind.effective-context-from-payload",
)
@pytest.mark.parametrize(
    ("method", "params", "context"),
    [
        ("tools/call", {"name": "read_file"}, "read_file"),
        ("tools/call", {"name": "github:create_issue"}, "github:create_issue"),
        ("tools/call", {"name": "chat.say"}, "chat.say"),
        ("prompts/get", {"name": "greet"}, "greet"),
        ("resources/read", {"uri": "docs://guides/intro"}, "docs://guides/intro"),
        ("resources/subscribe", {"uri": "docs://a"}, "docs://a"),
        ("resources/unsubscribe", {"uri": "docs://a"}, "docs://a"),
        ("completion/complete", {"ref": {"type": "ref/prompt", "name": "greet"}}, "greet"),
        ("completion/complete", {"ref": {"type": "ref/resource", "uri": "d://{x}"}}, "d://{x}"),
    ],
)
def test_the_effective_context_is_the_payloads(method, params, context):
    payload = request(method, params)
    for kind in (f"mcp.request.{method}", f"mcp.proposal.{method}"):
        assert (
            checked(kind, payload) == checked(f"{kind}:{context}", payload) == f"{kind}:{context}"
        )
        for other in ("other", f"{context}x"):
            with pytest.raises(e.ContextMismatch):
                checked(f"{kind}:{other}", payload)


RESPONSE, PROPOSAL = "mcp.response.tools/call", "mcp.proposal.tools/call"
COMPLETE, RESOURCE = "mcp.request.completion/complete", "mcp.request.resources/read"
PROGRESS = "mcp.notification.notifications/progress"

WRONG: list[tuple[str, Any, Any, Any, type[e.KindError]]] = [
    # the spoofs of the ADR, and those that come to mind
    ("mcp.request.tools/read", request(params={"name": "write_file"}), ["f"], [], e.MethodMismatch),
    (READING, request(params={"name": "write_file"}), ["f"], [], e.ContextMismatch),
    (CALL, request("Tools/Call"), ["f"], [], e.MethodMismatch),
    (CALL, request("tools/call "), ["f"], [], e.MethodMismatch),
    ("chat.message", request(), [], [], e.PayloadInvalid),
    ("mcp.notification.tools/call", without(request(), "id"), [], [], e.WrongOperation),
    (NOTIFIED, {**NOTE, "id": 1}, [], [], e.PayloadIdForbidden),
    ("mcp.request.notifications/message", {**NOTE, "id": 1}, ["f"], [], e.WrongOperation),
    ("mcp.proposal.notifications/message", {**NOTE, "id": 1}, [], [], e.WrongOperation),
    (CALL, request(result={}), ["f"], [], e.PayloadInvalid),
    (CALL, request(error={}), ["f"], [], e.PayloadInvalid),
    (RESPONSE, {**ANSWER, "method": "tools/call"}, ["a"], ["1"], e.PayloadInvalid),
    # requests
    (CALL, without(request(), "jsonrpc"), ["f"], [], e.PayloadInvalid),
    (CALL, request(jsonrpc="1.0"), ["f"], [], e.PayloadInvalid),
    (CALL, without(request(), "id"), ["f"], [], e.PayloadIdInvalid),
    (CALL, request(id=None), ["f"], [], e.PayloadIdInvalid),
    (CALL, request(id=True), ["f"], [], e.PayloadIdInvalid),
    (CALL, request(id=1.0), ["f"], [], e.PayloadIdInvalid),
    (CALL, request(), [], [], e.RecipientRequired),
    (CALL, request(), ["a", "b"], [], e.RecipientRequired),
    (CALL, without(request(), "method"), ["f"], [], e.MethodMismatch),
    (CALL, without(request(), "params"), ["f"], [], e.PayloadInvalid),
    (CALL, request(params=[1]), ["f"], [], e.PayloadInvalid),
    (CALL, request(params=None), ["f"], [], e.PayloadInvalid),
    (CALL, request(params={"name": 1}), ["f"], [], e.PayloadInvalid),
    (CALL, request(params={"name": ""}), ["f"], [], e.PayloadInvalid),
    (CALL, request(params={"name": "a\n"}), ["f"], [], e.PayloadInvalid),
    (CALL, request(params={"name": "a" * 2000}), ["f"], [], e.PayloadInvalid),
    (RESOURCE, request("resources/read", {"uri": None}), ["f"], [], e.PayloadInvalid),
    *(
        (COMPLETE, request("completion/complete", params), ["f"], [], e.PayloadInvalid)
        for params in ({}, {"ref": {"name": "a", "uri": "b"}})
    ),
    ("mcp.request.tools/list:x", request("tools/list", {}), ["f"], [], e.ContextNotAllowed),
    ("mcp.other.tools/call", request(), ["f"], [], e.UnknownOperation),
    (CALL, None, ["f"], [], e.PayloadMissing),
    (CALL, [], ["f"], [], e.PayloadMissing),
    # notifications
    (f"{NOTIFIED}:x", NOTE, [], [], e.ContextNotAllowed),
    (NOTIFIED, without(NOTE, "jsonrpc"), [], [], e.PayloadInvalid),
    (NOTIFIED, {**NOTE, "id": None}, [], [], e.PayloadIdForbidden),
    (CHAT, saying(), [], [], e.PayloadInvalid),
    (CHAT, saying(text=1), [], [], e.PayloadInvalid),
    (CHAT, saying(text="x", format="Markdown"), [], [], e.PayloadInvalid),
    (CHAT, without(saying(), "params"), [], [], e.PayloadInvalid),
    *(
        (f"mcp.notification.{method}", about(method), [], [], e.CorrelationRequired)
        for method in ("notifications/progress", "notifications/cancelled")
    ),
    # responses
    (RESPONSE, without(ANSWER, "jsonrpc"), ["a"], ["1"], e.PayloadInvalid),
    (RESPONSE, ANSWER, ["a"], [], e.CorrelationRequired),
    (RESPONSE, ANSWER, [], ["1"], e.RecipientRequired),
    (RESPONSE, {**ANSWER, **FAILURE}, ["a"], ["1"], e.ResultXorError),
    (RESPONSE, without(ANSWER, "result"), ["a"], ["1"], e.ResultXorError),
    (RESPONSE, {**ANSWER, "id": True}, ["a"], ["1"], e.PayloadIdInvalid),
    (RESPONSE, {**FAILURE, "error": []}, ["a"], ["1"], e.PayloadInvalid),
    (RESPONSE, {**FAILURE, "error": {"code": "1", "message": ""}}, ["a"], ["1"], e.PayloadInvalid),
    (RESPONSE, {**FAILURE, "error": {"code": 1}}, ["a"], ["1"], e.PayloadInvalid),
    ("mcp.response.tools/list:x", ANSWER, ["a"], ["1"], e.ContextNotAllowed),
    # proposals and what becomes of them
    (PROPOSAL, request(jsonrpc="1"), [], [], e.PayloadInvalid),
    (PROPOSAL, request(id=None), [], [], e.PayloadIdInvalid),
    (PROPOSAL, request(reason=5), [], [], e.PayloadInvalid),
    (PROPOSAL, request(), [], ["m1"], e.CorrelationForbidden),
    (PROPOSAL, request("tools/list"), [], [], e.MethodMismatch),
    ("mcpx.withdraw.proposal", {}, [], [], e.CorrelationRequired),
    ("mcpx.withdraw.proposal", {}, [], ["a", "b"], e.CorrelationRequired),
    ("mcpx.withdraw.other", {}, [], ["a"], e.UnknownOperation),
    ("mcpx.withdraw", {}, [], ["a"], e.UnknownOperation),
    ("mcpx.withdraw.proposal:x", {}, [], ["a"], e.ContextNotAllowed),
    ("mcpx.begin.request", {}, [], [], e.CorrelationRequired),
    ("mcpx.begin.request", {}, [], ["a", "b"], e.CorrelationRequired),
    ("mcpx.begin.proposal", {}, [], ["a"], e.UnknownOperation),
    ("mcpx.begin.request:x", {}, [], ["a"], e.ContextNotAllowed),
    ("mcpx.reject.proposal", {"reason": "no"}, [], [], e.CorrelationRequired),
    ("mcpx.reject.proposal", {}, [], ["a"], e.ReasonRequired),
    ("mcpx.reject.proposal", {"reason": " "}, [], ["a"], e.ReasonRequired),
    ("mcpx.accept.proposal", {}, [], ["a"], e.UnknownOperation),
    # what is the gateway's
    *((f"system.{name}", {}, [], [], e.ReservedKind) for name in ("welcome", "made-up", "error.x")),
    *(
        (f"{name}-ack", {}, [], [], e.ReservedKind)
        for name in ("capability.grant", "room.invite", "anyone.said")
    ),
    ("stream.open", {}, [], [], e.ReservedKind),
    # chat and the rest
    ("chat.message", {}, [], [], e.PayloadInvalid),
    ("chat.message", {"text": 1}, [], [], e.PayloadInvalid),
    ("chat.message", {"text": "x", "format": "html"}, [], [], e.PayloadInvalid),
    ("chat.message", {"text": "x", "format": 1}, [], [], e.PayloadInvalid),
    ("chat.message.html", {"text": "x"}, [], [], e.UnknownOperation),
    ("chat.message.plain", {"text": "x", "format": "markdown"}, [], [], e.FormatMismatch),
    ("chat.message.plain:x", {"text": "x"}, [], [], e.ContextNotAllowed),
    ("chat.message", None, [], [], e.PayloadMissing),
    ("chat.shout", {}, [], [], e.UnknownOperation),
    ("chat.acknowledge", {}, [], [], e.CorrelationRequired),
    ("chat.cancel", {}, [], ["m1", "m2"], e.CorrelationRequired),
    ("chat.message", {"text": "", **request()}, [], [], e.PayloadInvalid),
    ("participant.status", request(), [], [], e.PayloadInvalid),
    ("capability.grant.more", {}, [], [], e.UnknownOperation),
    ("room.kick.everyone:x", {}, [], [], e.UnknownOperation),
    ("participant.pause", [1], [], [], e.PayloadMissing),
]


@pytest.mark.requirement(
    "check.request-jsonrpc",
    "check.request-method",
    "check.method-case",
    "check.request-id",
    "check.request-one-recipient",
    "check.request-not-notification",
    "check.context-not-taken",
    "check.notification-method",
    "check.notification-no-id",
    "check.response-correlates",
    "check.response-id",
    "check.response-result-xor-error",
    "check.response-recipient",
    "check.proposal-correlates-nothing",
    "check.withdraw-correlates",
    "check.reject-correlates",
    "check.reject-reason",
    "check.system-reserved",
    "check.ack-reserved",
    "check.chat-text",
    "check.chat-format",
    "check.spoof-other-method",
    "check.spoof-other-tool",
    "check.spoof-two-levels",
    "kind.mcp-operations",
)
@pytest.mark.parametrize(
    ("kind", "payload", "to", "about", "error"),
    WRONG,
    ids=[f"{row[0]}-{row[4].code}-{n}" for n, row in enumerate(WRONG)],
)
def test_each_way_to_be_wrong_is_refused(kind, payload, to, about, error):
    with pytest.raises(error) as caught:
        checked(kind, payload, to, about)
    assert type(caught.value) is error


@pytest.mark.requirement("check.error-codes")
def test_the_codes_are_these_and_stay_these():
    codes = (
        "method_mismatch context_mismatch context_not_allowed format_mismatch payload_missing "
        "payload_invalid payload_id_invalid payload_id_forbidden result_xor_error "
        "recipient_required correlation_required correlation_forbidden reason_required "
        "unknown_operation wrong_operation kind_reserved"
    )
    assert {row[4].code for row in WRONG} == set(codes.split())


@pytest.mark.requirement(
    "check.notification-broadcast",
    "check.proposal-broadcast",
    "check.proposal-no-id",
    "check.proposal-like-request",
    "kind.unknown-protocol-carried",
    "kind.effective-without-context",
)
@pytest.mark.parametrize(
    ("kind", "payload", "to", "about", "answer"),
    [
        (NOTIFIED, NOTE, [], [], NOTIFIED),
        (NOTIFIED, without(NOTE, "params"), [], [], NOTIFIED),
        ("mcp.request.tools/list", request("tools/list", {}), ["f"], [], "mcp.request.tools/list"),
        ("mcp.response.tools/call:x", ANSWER, ["a"], ["1"], "mcp.response.tools/call:x"),
        (RESPONSE, FAILURE, ["a", "b"], ["1"], RESPONSE),
        (CALL, request(), ["f"], ["p1"], READING),
        (PROPOSAL, without(request(), "id", "jsonrpc"), [], [], f"{PROPOSAL}:read_file"),
        (PROPOSAL, request(), ["f"], [], f"{PROPOSAL}:read_file"),
        ("mcpx.withdraw.proposal", {}, [], ["p1"], "mcpx.withdraw.proposal"),
        ("mcpx.withdraw.proposal", None, [], ["p1"], "mcpx.withdraw.proposal"),
        ("mcpx.begin.request", None, [], ["m1"], "mcpx.begin.request"),
        (CHAT, saying(text="hi", format="markdown", mentions=["bob"]), [], [], CHAT),
        (PROGRESS, about("notifications/progress"), ["alice"], ["m1"], PROGRESS),
        ("mcpx.reject.proposal", {"reason": "too dear"}, [], ["p1"], "mcpx.reject.proposal"),
        ("chat.message", {"text": "hi"}, [], [], "chat.message"),
        ("chat.message", {"text": "hi", "format": "markdown"}, [], [], "chat.message.markdown"),
        ("chat.message.text", {"text": "hi", "format": "plain"}, [], [], "chat.message.text"),
        ("chat.acknowledge", None, [], ["m1"], "chat.acknowledge"),
        ("participant.pause", None, ["bot"], [], "participant.pause"),
        ("participant.pause", {"reason": "x"}, ["bot"], [], "participant.pause"),
        ("game.move", {"method": "tools/call", "id": True}, [], [], "game.move"),
        ("game.move.e2:e4", None, [], [], "game.move.e2:e4"),
        ("stream.data", [1], [], [], "stream.data"),
    ],
)
def test_what_is_right_passes_with_its_effective_kind(kind, payload, to, about, answer):
    assert checked(kind, payload, to, about) == answer


@pytest.mark.requirement("check.own-errors-only")
@given(
    kind_texts() | st.sampled_from([row[0] for row in WRONG if row[0] != "mcpx.withdraw"]),
    st.none()
    | OBJECTS
    | st.fixed_dictionaries(
        {},
        optional=dict.fromkeys(
            ("jsonrpc", "id", "method", "params", "text", "reason", "result", "error", "format"),
            JSON,
        ),
    ),
    st.lists(st.text(max_size=3), max_size=2),
    st.lists(st.text(max_size=3), max_size=2),
)
def test_no_message_makes_it_raise_anything_but_its_own_errors(kind, payload, to, about):
    try:
        checked(kind, payload, to, about)
    except e.KindError:
        return


@pytest.mark.requirement("check.stateless")
def test_the_answer_does_not_depend_on_what_came_before():
    for _ in range(2):
        assert checked(CALL, request()) == READING
        with pytest.raises(e.ContextMismatch):
            checked(READING, request(params={"name": "write_file"}))


def test_a_plain_message_has_an_effective_kind_too():
    assert str(kind_of(Request(id=1, method="tools/call", params=READ))) == READING
    assert str(kind_of(Request(id=1, method="tools/list"))) == "mcp.request.tools/list"
    assert (
        str(kind_of(Notification(method="notifications/x"))) == "mcp.notification.notifications/x"
    )
    assert kind_of(Response(id=1, result={})) is None
    with pytest.raises(e.PayloadInvalid):
        kind_of(Request(id=1, method="tools/call"))
    with pytest.raises(e.PayloadInvalid, match="cannot be part of a kind"):
        kind_of(Request(id=1, method="tools/call", params={"name": "a\nb"}))
    for plain in (
        Request(id=1, method="notifications/chat/message", params={"text": "x"}),
        Notification(method="tools/call", params=READ),
    ):
        with pytest.raises(e.WrongOperation):
            kind_of(plain)
    for method in "no spaces", "tools/call:read_file":
        with pytest.raises(e.KindSyntax):
            kind_of(Request(id=1, method=method, params=READ))


def test_the_effective_kind_can_be_asked_for_alone():
    assert str(effective(parse(CALL), {"params": READ})) == READING
