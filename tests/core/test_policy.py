"""Policy."""

from __future__ import annotations

from typing import Any

import pytest

from folkmoot.core import errors as e
from folkmoot.core.capability import Rights
from folkmoot.core.kinds import parse
from folkmoot.core.mcpx import decode_mcpx
from folkmoot.core.message import Notification, Request, Response
from folkmoot.core.policy import (
    Decision,
    Principal,
    PrincipalType,
    Verdict,
    decide,
    judge,
)
from folkmoot.core.strict import encode

ALICE = Principal("account-1", "alice")
GATEWAY = Principal("gateway", "gateway", PrincipalType.GATEWAY)
CALL = "mcp.request.tools/call:rm"
NOTE = "mcp.notification.notifications/chat/message"
MEMBER = [
    "chat.*",
    "mcp.notification.notifications/chat/*",
    "mcp.proposal.*",
    "mcp.request.tools/call:chat.say",
]


def verdict(rights: list[Any], kind: str, payload: Any = None, who: Principal = ALICE) -> Verdict:
    return judge(who, Rights(rights), parse(kind), payload)


@pytest.mark.requirement("policy.allow")
def test_what_a_right_covers_is_allowed():
    assert verdict(["mcp.*"], CALL).decision is Decision.ALLOW
    assert verdict(["*"], "chat.message", {"text": "x"}).decision is Decision.ALLOW


@pytest.mark.requirement("policy.default-deny", "policy.deny-says-why")
def test_what_no_right_covers_is_denied_with_a_reason():
    refused = verdict(["chat.*", "!chat.cancel"], CALL)
    assert refused.decision is Decision.DENY
    assert isinstance(refused.error, e.CapabilityDenied)
    assert refused.error.code == "capability_denied"
    assert CALL in str(refused.error)
    held = ["chat.*", "!chat.cancel"]
    assert refused.error.data == {"attempted_kind": CALL, "your_capabilities": held}
    assert verdict([], CALL).decision is Decision.DENY


@pytest.mark.requirement("policy.propose")
@pytest.mark.parametrize(
    "rights",
    [["mcp.proposal.*"], ["mcp.proposal.tools/call:rm"], ["mcp.*", "!mcp.request.tools/call:rm"]],
)
def test_who_may_propose_is_told_so(rights):
    refused = verdict(rights, CALL)
    assert refused.decision is Decision.PROPOSE
    assert isinstance(refused.error, e.ProposalRequired)
    assert refused.error.data["attempted_kind"] == CALL


@pytest.mark.requirement("policy.propose-only-for-requests")
@pytest.mark.parametrize(
    "kind",
    ["chat.message", "mcp.notification.notifications/x", "mcpx.reject.proposal", "room.kick"],
)
def test_nothing_but_a_request_can_be_proposed(kind):
    assert verdict(["mcp.proposal.*"], kind).decision is Decision.DENY
    assert verdict(["mcp.proposal.tools/list"], CALL).decision is Decision.DENY


@pytest.mark.requirement("policy.system-denied")
def test_system_is_the_gateways_alone():
    assert verdict(["*"], "system.welcome").decision is Decision.DENY
    assert verdict([], "system.welcome", who=GATEWAY).decision is Decision.ALLOW
    assert verdict([], CALL, who=GATEWAY).decision is Decision.ALLOW


def test_an_open_request_is_the_right_to_answer():
    assert verdict([], "mcp.response.tools/call:rm").decision is Decision.ALLOW
    assert verdict(["!mcp.response.*"], "mcp.response.tools/call:rm").decision is Decision.DENY


SAY = {"params": {"name": "chat.say", "arguments": {"text": "x"}}}
CHATS: list[tuple[str, Any]] = [
    ("chat.message", {"text": "x"}),
    ("chat.message.text", {"text": "x"}),
    (NOTE, {"params": {"text": "x"}}),
    ("mcp.proposal.tools/call:chat.say", SAY),
    ("mcp.request.tools/call:chat.say", SAY),
]


DENIES: list[Any] = [
    "!chat.message",
    "!chat.*",
    f"!{NOTE}",
    "!mcp.notification.*",
    "!chat.message.plain",
    {"kind": "!chat.message", "payload": {"text": "x*"}},
    {"kind": f"!{NOTE}", "payload": {"params": {"text": "x*"}}},
]


@pytest.mark.requirement("chat.deny-both")
@pytest.mark.parametrize("deny", DENIES, ids=str)
@pytest.mark.parametrize(("kind", "payload"), CHATS, ids=[kind for kind, _ in CHATS])
def test_a_deny_on_one_spelling_of_chat_denies_them_all(deny, kind, payload):
    assert verdict(MEMBER, kind, payload).decision is Decision.ALLOW
    refused = verdict([*MEMBER, deny], kind, payload)
    assert refused.decision is Decision.DENY
    assert Rights([*MEMBER, deny]).denies(parse(kind), payload)


def test_a_format_that_is_none_does_not_slip_past_a_deny_on_a_format():
    for said in "Markdown", "markdown ", ["markdown"]:
        payload = {"params": {"name": "chat.say", "arguments": {"text": "x", "format": said}}}
        rights = [*MEMBER, "!chat.message.markdown"]
        refused = verdict(rights, "mcp.request.tools/call:chat.say", payload)
        assert refused.decision is Decision.DENY, said


@pytest.mark.parametrize(("kind", "payload"), CHATS, ids=[kind for kind, _ in CHATS])
def test_a_deny_on_another_format_or_another_thing_leaves_chat_alone(kind, payload):
    for deny in (
        "!chat.message.markdown",
        "!chat.cancel",
        "!mcp.request.tools/call:other",
        {"kind": "!chat.message", "payload": {"text": "y*"}},
    ):
        assert verdict([*MEMBER, deny], kind, payload).decision is Decision.ALLOW


def test_the_gateway_is_not_held_to_what_participants_may_send():
    raw = encode({"protocol": "mcpx/v1", "kind": "system.welcome", "payload": {}})
    assert decide(GATEWAY, Rights(), decode_mcpx(raw)).decision is Decision.ALLOW
    with pytest.raises(e.ReservedKind):
        decide(ALICE, Rights(["*"]), decode_mcpx(raw))


def test_a_long_list_of_capabilities_is_cut_in_a_refusal():
    refused = verdict([f"chat.made-up-{n}" for n in range(1000)], CALL)
    assert len(refused.error.data["your_capabilities"]) == 64
    assert refused.error.data["capabilities_held"] == 1000


def test_the_verdict_tells_the_effective_kind():
    assert str(verdict(["mcp.*"], CALL).kind) == CALL
    message = Request(id=1, method="tools/call", params={"name": "rm"})
    assert str(decide(ALICE, Rights(), message).kind) == CALL
    assert decide(ALICE, Rights(), Response(id=1, result={})).kind is None


def in_room(kind: str, name: str) -> bytes:
    payload = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name}}
    return encode({"protocol": "mcpx/v1", "kind": kind, "to": ["files"], "payload": payload})


@pytest.mark.requirement("capability.effective-kind")
def test_a_whole_message_is_judged_by_what_it_does():
    rights = Rights(["mcp.request.tools/call:read"])
    bare = "mcp.request.tools/call"
    assert decide(ALICE, rights, decode_mcpx(in_room(bare, "read"))).decision is Decision.ALLOW
    assert decide(ALICE, rights, decode_mcpx(in_room(bare, "rm"))).decision is Decision.DENY
    with pytest.raises(e.ContextMismatch):
        decide(ALICE, rights, decode_mcpx(in_room(f"{bare}:read", "rm")))


def test_a_plain_message_is_judged_by_the_same_rights():
    rights = Rights(["mcp.request.tools/call:read", "mcp.notification.*"])
    allowed = decide(ALICE, rights, Request(id=1, method="tools/call", params={"name": "read"}))
    assert allowed.decision is Decision.ALLOW
    refused = decide(ALICE, rights, Request(id=1, method="tools/call", params={"name": "rm"}))
    assert refused.decision is Decision.DENY
    assert decide(ALICE, rights, Notification(method="notifications/x")).decision is Decision.ALLOW
    assert decide(ALICE, Rights(), Response(id=1, result={})).decision is Decision.ALLOW


@pytest.mark.parametrize(
    "limit",
    [
        {"kind": "mcp.request.tools/call:rm", "payload": {"params": {"name": "rm"}}},
        {"kind": "!mcp.request.tools/call", "payload": {"params": {"arguments": {"path": "*"}}}},
    ],
)
def test_a_request_is_judged_by_its_payload_where_a_capability_speaks_of_that(limit):
    rights = Rights(["chat.*", *(["mcp.request.*"] if "!" in limit["kind"] else []), limit])
    assert not rights.by_kind_alone
    said = {"name": "rm", "arguments": {"path": "/"} if "!" in limit["kind"] else {}}
    decision = decide(ALICE, rights, Request(id=1, method="tools/call", params=said)).decision
    assert decision is (Decision.DENY if "!" in limit["kind"] else Decision.ALLOW)
    assert Rights(["chat.*", "mcp.*"]).by_kind_alone
